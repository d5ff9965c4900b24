function vars = symvar (str)
  if nargin < 1, print_usage (); end
  names = unique (regexp (str, '(?<![\w.])[A-Za-z_]\w*(?!\w*\s*\()', "match"));
  names = names(:);
  constants = {"i", "j", "pi", "e", "Inf", "inf", "NaN", "nan", "eps", "NA"};
  vars = names(! ismember (names, constants));
  if isempty (vars), vars = {}; end
end

function out = extractBetween (text, first, last, option, value)
  % A cell of all parts of a text; of several texts, each of which has as many, a row each.
  if nargin < 3, print_usage (); end
  inclusive = ! (ischar (first) || ischar (last));
  if nargin == 5 && strcmpi (option, "Boundaries"), inclusive = strcmpi (value, "inclusive"); end
  if ischar (text), texts = {text}; else, texts = text; end
  if ! iscellstr (texts), error ("extractBetween: the first argument must be a text or a cell array of texts"); end
  parts = cell (numel (texts), 1);
  for k = 1:numel (texts)
    [from, to] = between_bounds ("extractBetween", texts{k}, first, last, inclusive);
    parts{k} = arrayfun (@(a, b) texts{k}(a:b), from, to, "UniformOutput", false);
  end
  n = cellfun (@numel, parts);
  if any (n != n(1)), error ("extractBetween: texts must have the same number of parts"); end
  if ischar (text)
    out = parts{1}(:);
  elseif n(1) == 1
    out = reshape (vertcat (parts{:}), size (texts));
  else
    out = vertcat (parts{:});
  end
end

function text = erase (text, pattern)
  % In one pass from the left; of several patterns, the first that fits.
  if nargin != 2, print_usage (); end
  if ! (ischar (text) || iscellstr (text)), error ("erase: STR must be a string or cell array of strings"); end
  if ! (ischar (pattern) || iscellstr (pattern)), error ("erase: PTN must be a string or cell array of strings"); end
  if ischar (pattern) && rows (pattern) > 1, pattern = cellstr (pattern); elseif ischar (pattern), pattern = {pattern}; end
  pattern = pattern(! cellfun (@isempty, pattern(:)));
  if isempty (pattern), return; end
  any_of = strjoin (cellfun (@(p) regexptranslate ("escape", p), pattern(:).', "UniformOutput", false), "|");
  if ischar (text) && rows (text) > 1
    lines = cell (rows (text), 1);
    for k = 1:rows (text), lines{k} = regexprep (text(k,:), any_of, ""); end
    text = char (lines);
  else
    text = regexprep (text, any_of, "");
  end
end

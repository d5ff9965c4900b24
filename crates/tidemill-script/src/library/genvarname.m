function name = genvarname (text, taken)
  if nargin < 1, print_usage (); end
  if nargin < 2, taken = {}; end
  if ! (ischar (text) || iscellstr (text)), error ("genvarname: STR must be a string or cellstr"); end
  if ! (ischar (taken) || iscellstr (taken)), error ("genvarname: EXCLUSIONS must be a string or cellstr"); end
  if ischar (text) && rows (text) != 1, error ("genvarname: if more than one STR is given, it must be a cellstr"); end
  if ischar (taken), taken = {taken}; end
  texts = text;
  if ischar (texts), texts = {texts}; end
  for k = 1:numel (texts)
    one = regexprep (texts{k}, '[^A-Za-z0-9_]', '_');
    if iskeyword (one), one = ["x", upper(one(1)), one(2:end)]; end
    if isempty (one) || ! isletter (one(1)), one = ["x", one]; end
    free = one;
    n = 0;
    % A number behind digits would be read with them.
    if any (one(end) == "0":"9"), one = [one, "_"]; end
    while any (strcmp (free, taken)), n++; free = sprintf ("%s%d", one, n); end
    texts{k} = free;
    taken{end+1} = free;
  end
  if ischar (text), name = texts{1}; else, name = texts; end
end

function name = genvarname (text, taken)
  if nargin < 1, print_usage (); end
  if nargin < 2, taken = {}; end
  if ischar (taken), taken = {taken}; end
  texts = text;
  if ischar (texts), texts = {texts}; end
  for k = 1:numel (texts)
    one = regexprep (texts{k}, '[^A-Za-z0-9_]', '_');
    if isempty (one), one = "x"; end
    if iskeyword (one), one = ["x", upper(one(1)), one(2:end)]; end
    if any (one(1) == "0":"9"), one = ["x", one]; end
    free = one;
    n = 0;
    while any (strcmp (free, taken)), n++; free = sprintf ("%s%d", one, n); end
    texts{k} = free;
    taken{end+1} = free;
  end
  if ischar (text), name = texts{1}; else, name = texts; end
end

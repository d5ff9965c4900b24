function out = splitlines (text)
  if nargin != 1, print_usage (); end
  if ischar (text), text = {text}; end
  if ! iscellstr (text), error ("splitlines: the argument must be a text or a cell array of texts"); end
  parts = cellfun (@(t) strsplit (strrep (strrep (t, "\r\n", "\n"), "\r", "\n"), "\n", "CollapseDelimiters", false)(:), text(:), "UniformOutput", false);
  n = cellfun (@numel, parts);
  if any (n != n(1)), error ("splitlines: texts must have the same number of lines"); end
  if isscalar (parts), out = parts{1}; else, out = horzcat (parts{:}).'; end
end

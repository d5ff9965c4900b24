function out = replace (text, old, new)
  % In one pass from the left; of several old texts, the first that fits.
  if nargin != 3, print_usage (); end
  if ischar (old), old = {old}; end
  if ischar (new), new = {new}; end
  if ! (iscellstr (old) && iscellstr (new)), error ("replace: OLD and NEW must be texts or cell arrays of texts"); end
  if isscalar (new), new = repmat (new, size (old)); end
  if numel (new) != numel (old), error ("replace: OLD and NEW must have the same number of texts"); end
  out = each_text ("replace", text, @(t) one (t, old, new));
end
function t = one (t, old, new)
  if isscalar (old), if ! isempty (old{1}), t = strrep (t, old{1}, new{1}); end, return; end
  any_of = strjoin (cellfun (@(p) regexptranslate ("escape", p), old(:).', "UniformOutput", false), "|");
  [found, between] = regexp (t, any_of, "match", "split");
  replaced = found;
  for k = numel (old):-1:1, replaced(strcmp (found, old{k})) = new(k); end
  found = replaced;
  t = [between(1:end-1); found];
  t = [t{:}, between{end}];
end

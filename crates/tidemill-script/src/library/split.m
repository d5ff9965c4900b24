function out = split (text, delimiter)
  % At each delimiter; at runs of blanks where none is given.
  if nargin < 1 || nargin > 2, print_usage (); end
  if ischar (text), text = {text}; end
  if ! iscellstr (text), error ("split: the first argument must be a text or a cell array of texts"); end
  if nargin < 2
    cut = @(t) regexp (t, '\s+', "split");
  else
    if ischar (delimiter), delimiter = {delimiter}; end
    any_of = strjoin (cellfun (@(p) regexptranslate ("escape", p), delimiter(:).', "UniformOutput", false), "|");
    cut = @(t) regexp (t, any_of, "split");
  end
  parts = cellfun (@(t) cut (t)(:), text(:), "UniformOutput", false);
  n = cellfun (@numel, parts);
  if any (n != n(1)), error ("split: texts must have the same number of parts"); end
  if isscalar (parts)
    out = parts{1};
  elseif isrow (text)
    out = reshape (horzcat (parts{:}).', 1, numel (text), []);
  else
    out = horzcat (parts{:}).';
  end
end

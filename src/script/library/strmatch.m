function at = strmatch (s, a, exact)
  if nargin < 2, print_usage (); end
  if ! ischar (s) || rows (s) > 1 && ! isempty (s), error ("strmatch: S must be a string or a cell array containing only one string"); end
  if ! (ischar (a) || iscellstr (a)), error ("strmatch: A must be a string or cell array of strings"); end
  a = cellstr (a);
  if nargin == 3
    at = find (strcmp (s, a(:)));
  else
    at = find (strncmp (s, a(:), numel (s)));
    if isempty (s), at = (1:numel (a)).'; end
  end
end

function at = strmatch (s, a, exact)
  if nargin < 2, print_usage (); end
  if iscellstr (s)
    if numel (s) != 1, error ("strmatch: a cell array S must contain only one string"); end
    s = s{1};
  end
  if ! ischar (s) || rows (s) > 1, error ("strmatch: S must be a string"); end
  if ! (ischar (a) || iscellstr (a)), error ("strmatch: A must be a string or cell array of strings"); end
  % Blanks and null characters at the end count only where there is nothing else.
  ends = '[ \0]+$';
  trimmed = regexprep (s, ends, "");
  if ! isempty (trimmed), s = trimmed; end
  is_matrix = ischar (a);
  if is_matrix, a = num2cell (a, 2); end
  if isempty (s)
    fits = cellfun (@isempty, a(:));
  elseif nargin == 3 && is_matrix
    fits = strcmp (trimmed, regexprep (a(:), ends, ""));
  elseif nargin == 3
    fits = strcmp (s, regexprep (a(:), ends, ""));
  else
    fits = strncmp (s, a(:), numel (s));
  end
  at = find (fits);
  if isempty (at), at = []; end
end

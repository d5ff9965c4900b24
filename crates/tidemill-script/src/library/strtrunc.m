function s = strtrunc (s, n)
  if nargin != 2, print_usage (); end
  if ! (isscalar (n) && n == fix (n) && n >= 0), error ("strtrunc: length N must be a positive integer (N >= 0)"); end
  if ischar (s)
    if columns (s) > n, s = s(:,1:n); end
  elseif iscell (s)
    if ! all (cellfun ("isclass", s, "char")(:)), error ("strtrunc: S must be a character string or a cell array of strings"); end
    long = cellfun ("size", s, 2) > n;
    s(long) = cellfun (@(t) t(:,1:n), s(long), "UniformOutput", false);
  else
    error ("strtrunc: S must be a character string or a cell array of strings");
  end
end

function s = strtrunc (s, n)
  if nargin != 2, print_usage (); end
  if ! (isscalar (n) && n == fix (n) && n >= 0), error ("strtrunc: length N must be a positive integer (N >= 0)"); end
  if ischar (s)
    if columns (s) > n, s = s(:,1:n); end
  elseif iscell (s)
    for k = 1:numel (s)
      if ! ischar (s{k}), error ("strtrunc: S must be a character string or a cell array of strings"); end
      if columns (s{k}) > n, s{k} = s{k}(:,1:n); end
    end
  else
    error ("strtrunc: S must be a character string or a cell array of strings");
  end
end

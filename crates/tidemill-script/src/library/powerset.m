function p = powerset (a, by_rows)
  if nargin < 1, print_usage (); end
  if nargin > 1
    a = unique (a, by_rows); n = rows (a); pick = @(k) a(k,:);
  else
    a = unique (a); a = a(:).'; n = numel (a); pick = @(k) a(k);
  end
  if n == 0, p = {}; return; end
  p = cell (1, 2 ^ n);
  for k = 0:2 ^ n - 1, p{k+1} = pick (find (bitand (k, 2 .^ (0:n-1)))); end
end

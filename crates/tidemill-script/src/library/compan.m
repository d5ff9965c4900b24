function a = compan (c)
  if nargin < 1, print_usage (); end
  if ! isvector (c), error ("compan: C must be a vector"); end
  n = numel (c);
  if n < 2
    a = [];
  else
    a = diag (ones (1, n - 2), -1);
    a(1,:) = -c(2:n) / c(1);
  end
end

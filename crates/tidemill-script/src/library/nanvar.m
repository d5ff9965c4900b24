function y = nanvar (x, opt, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (opt), opt = 0; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  lost = isnan (x);
  n = sum (! lost, dim);
  x(lost) = 0;
  off = x - sum (x, dim) ./ n;
  off(lost) = 0;
  y = sum (abs (off) .^ 2, dim) ./ max (n - (opt == 0), 1);
  y(n == 0) = NaN;
end

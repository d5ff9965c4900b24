function r = corr (x, y)
  if nargin < 1, print_usage (); end
  if nargin < 2, y = x; end
  if ! isfloat (x), x = double (x); end
  if ! isfloat (y), y = double (y); end
  if isrow (x) && ! isscalar (x), x = x.'; end
  if isrow (y) && ! isscalar (y), y = y.'; end
  if rows (x) != rows (y), error ("corr: X and Y must have the same number of observations"); end
  n = rows (x);
  if n == 1, r = NaN * (x' * y); return; end
  x = center (x, 1);
  y = center (y, 1);
  r = (x' * y) ./ (sqrt (sum (abs (x) .^ 2, 1))' * sqrt (sum (abs (y) .^ 2, 1)));
end

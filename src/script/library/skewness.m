function y = skewness (x, flag, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (flag), flag = 1; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! isfloat (x), x = double (x); end
  n = size (x, dim);
  x = x - mean (x, dim);
  s = sqrt (mean (x .^ 2, dim));
  y = mean (x .^ 3, dim) ./ s .^ 3;
  y(s == 0) = NaN;
  if flag == 0 && n > 2, y = y * sqrt (n * (n - 1)) / (n - 2); end
end

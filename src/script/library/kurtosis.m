function y = kurtosis (x, flag, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (flag), flag = 1; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! isfloat (x), x = double (x); end
  n = size (x, dim);
  x = x - mean (x, dim);
  s2 = mean (x .^ 2, dim);
  y = mean (x .^ 4, dim) ./ s2 .^ 2;
  y(s2 == 0) = NaN;
  if flag == 0 && n > 3, y = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * y - 3 * (n - 1)); end
end

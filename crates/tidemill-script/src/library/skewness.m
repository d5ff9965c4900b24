function y = skewness (x, flag, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (flag), flag = 1; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isnumeric (x) || islogical (x)), error ("skewness: X must be a numeric vector or matrix"); end
  if ! isscalar (flag) || flag != 0 && flag != 1, error ("skewness: FLAG must be 0 or 1"); end
  if ! isscalar (dim) || dim != fix (dim) || dim < 1, error ("skewness: DIM must be an integer and a valid dimension"); end
  if ! isfloat (x), x = double (x); end
  if nargin < 3 && isequal (size (x), [0, 0]), y = NaN (underlyingType (x)); return; end
  n = size (x, dim);
  x = center (x, dim);
  s = sqrt (mean (abs (x) .^ 2, dim));
  y = mean (x .^ 3, dim) ./ s .^ 3;
  y(s == 0) = NaN;
  if flag == 0 && n > 2, y = y * sqrt (n * (n - 1)) / (n - 2);
  elseif flag == 0, y(:) = NaN; end
end

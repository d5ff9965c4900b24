function y = kurtosis (x, flag, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (flag), flag = 1; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isnumeric (x) || islogical (x)), error ("kurtosis: X must be a numeric vector or matrix"); end
  if ! isscalar (flag) || flag != 0 && flag != 1, error ("kurtosis: FLAG must be 0 or 1"); end
  if ! isscalar (dim) || dim != fix (dim) || dim < 1, error ("kurtosis: DIM must be an integer and a valid dimension"); end
  if ! isfloat (x), x = double (x); end
  if nargin < 3 && isequal (size (x), [0, 0]), y = NaN (underlyingType (x)); return; end
  n = size (x, dim);
  x = center (x, dim);
  s2 = mean (abs (x) .^ 2, dim);
  y = mean (x .^ 4, dim) ./ s2 .^ 2;
  y(s2 == 0) = NaN;
  if flag == 0 && n > 3, y = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * y - 3 * (n - 1));
  elseif flag == 0, y(:) = NaN; end
end

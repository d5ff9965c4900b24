function q = integral2 (fcn, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  [vectorized, options] = integral_options ("integral2", varargin, 1e-8);
  if ! (isreal (xa) && isreal (xb)), error ("integral2: XA and XB must be real"); end
  if ! vectorized, fcn = @(x, y) arrayfun (fcn, x, y); end
  if ! is_function_handle (ya), ya = @(x) ya; end
  if ! is_function_handle (yb), yb = @(x) yb; end
  inner = @(x) quadgk (@(y) fcn (x * ones (size (y)), y), ya (x), yb (x), options{:});
  q = quadgk (@(x) arrayfun (inner, x), xa, xb, options{:});
end

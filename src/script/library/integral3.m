function q = integral3 (f, xa, xb, ya, yb, za, zb, varargin)
  if nargin < 7, print_usage (); end
  [vectorized, options] = integral_options ("integral3", varargin, 1e-6);
  if ! (isreal (xa) && isreal (xb)), error ("integral3: XA and XB must be real"); end
  if ! vectorized, f = @(x, y, z) arrayfun (f, x, y, z); end
  if ! is_function_handle (ya), ya = @(x) ya; end
  if ! is_function_handle (yb), yb = @(x) yb; end
  if ! is_function_handle (za), za = @(x, y) za; end
  if ! is_function_handle (zb), zb = @(x, y) zb; end
  inner = @(x, y) quadgk (@(z) f (x + zeros (size (z)), y + zeros (size (z)), z), za (x, y), zb (x, y), options{:});
  middle = @(x) quadgk (@(y) arrayfun (@(t) inner (x, t), y), ya (x), yb (x), options{:});
  q = quadgk (@(x) arrayfun (middle, x), xa, xb, options{:});
end

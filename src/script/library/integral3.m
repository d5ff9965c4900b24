function q = integral3 (f, xa, xb, ya, yb, za, zb, varargin)
  if nargin < 7, print_usage (); end
  limit = @(v) ifelse_handle (v);
  ya = limit (ya); yb = limit (yb);
  if ! is_function_handle (za), za = @(x, y) za; end
  if ! is_function_handle (zb), zb = @(x, y) zb; end
  inner = @(x, y) quadgk (@(z) f (x + zeros (size (z)), y + zeros (size (z)), z), za (x, y), zb (x, y));
  middle = @(x) quadgk (@(y) arrayfun (@(t) inner (x, t), y), ya (x), yb (x));
  q = quadgk (@(x) arrayfun (middle, x), xa, xb);
end
function h = ifelse_handle (v)
  if is_function_handle (v), h = v; else, h = @(x) v; end
end

function q = integral3 (f, xa, xb, ya, yb, za, zb, varargin)
  if nargin < 7, print_usage (); end
  [tolerances, vectorized] = area_options ("integral3", xa, xb, varargin, 1e-6);
  ya = area_limit ("integral3", "YA", ya); yb = area_limit ("integral3", "YB", yb);
  za = area_limit ("integral3", "ZA", za); zb = area_limit ("integral3", "ZB", zb);
  if ischar (f), f = str2func (f); end
  if ! vectorized, f = @(x, y, z) arrayfun (f, x, y, z); end
  inner = @(x, y) quadgk (@(z) f (x + zeros (size (z)), y + zeros (size (z)), z), za (x, y), zb (x, y), tolerances{:});
  middle = @(x) quadgk (@(y) arrayfun (@(t) inner (x, t), y), ya (x), yb (x), tolerances{:});
  q = quadgk (@(x) arrayfun (middle, x), xa, xb, tolerances{:});
end

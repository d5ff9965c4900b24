function [x, y, z] = ellipsoid (xc, yc, zc, xr, yr, zr, n)
  if nargin < 6, print_usage (); end
  if nargin < 7, n = 20; end
  [x, y, z] = sphere (n);
  [x, y, z] = deal (xr * x + xc, yr * y + yc, zr * z + zc);
  if nargout == 0, surf (x, y, z); clear x y z; end
end

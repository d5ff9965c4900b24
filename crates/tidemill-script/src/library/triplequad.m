function q = triplequad (f, xa, xb, ya, yb, za, zb, tolerance, quadf)
  if nargin < 7, print_usage (); end
  if nargin < 8 || isempty (tolerance), tolerance = 1e-6; end
  if nargin < 9 || isempty (quadf), quadf = @quadgk; end
  if ischar (f), f = str2func (f); end
  q = dblquad (@(y, z) inner (f, y, z, xa, xb, tolerance, quadf), ya, yb, za, zb, tolerance);
end
function q = inner (f, y, z, xa, xb, tolerance, quadf)
  q = zeros (size (y));
  for k = 1:numel (y)
    at = z(min (k, numel (z)));
    q(k) = quadf (@(x) f (x, y(k), at), xa, xb, tolerance);
  end
end

function [sn, cn, dn, err] = ellipj (u, m, tol)
  % By arithmetic and geometric means, of real numbers.
  if nargin < 2, print_usage (); end
  if ! (isreal (u) && isreal (m)), error ("ellipj: arguments must be real"); end
  if isrow (m) && iscolumn (u) && ! isscalar (u) && ! isscalar (m), [m, u] = meshgrid (m, u); end
  [differ, u, m] = common_size (u, m);
  if differ, error ("ellipj: Invalid size combination for U and M"); end
  sn = cn = dn = NaN (size (u));
  err = zeros (size (u));
  for k = 1:numel (u)
    if m(k) >= 0 && m(k) <= 1, [sn(k), cn(k), dn(k)] = one (u(k), m(k)); end
  end
end
function [sn, cn, dn] = one (u, m)
  if m == 1, sn = tanh (u); cn = dn = sech (u); return; end
  a = 1; b = sqrt (1 - m); c = sqrt (m);
  n = 1;
  while abs (c(n)) > eps && n < 30
    a(n+1) = (a(n) + b) / 2;
    c(n+1) = (a(n) - b) / 2;
    b = sqrt (a(n) * b);
    n++;
  end
  phi = 2 ^ (n - 1) * a(n) * u;
  before = phi;
  for k = n:-1:2
    before = phi;
    phi = (asin (c(k) * sin (phi) / a(k)) + phi) / 2;
  end
  sn = sin (phi);
  cn = cos (phi);
  dn = sqrt (1 - m * sn ^ 2);
end

function [sn, cn, dn, err] = ellipj (u, m, tol)
  % By arithmetic and geometric means, of real numbers.
  if nargin < 2, print_usage (); end
  if ! (isreal (u) && isreal (m)), error ("ellipj: arguments must be real"); end
  if isrow (m) && iscolumn (u) && ! isscalar (u) && ! isscalar (m), [m, u] = meshgrid (m, u); end
  [differ, u, m] = common_size (u, m);
  if differ, error ("ellipj: Invalid size combination for U and M"); end
  [sn, cn, dn] = in_parts (@of_part, u, m);
  err = zeros (size (u));
end
function [sn, cn, dn] = of_part (u, m)
  unknown = ! (m >= 0 & m <= 1);
  m(unknown) = 0;
  a = ones (size (m));
  b = sqrt (1 - m);
  c = sqrt (m);
  a(m == 1) = b(m == 1) = 1;
  c(m == 1) = 0;
  n = 1;
  while any (abs (c(:,n)) > eps) && n < 30
    goes_on = abs (c(:,n)) > eps;
    a(:,n+1) = a(:,n);
    c(:,n+1) = 0;
    a(goes_on,n+1) = (a(goes_on,n) + b(goes_on)) / 2;
    c(goes_on,n+1) = (a(goes_on,n) - b(goes_on)) / 2;
    b(goes_on) = sqrt (a(goes_on,n) .* b(goes_on));
    n++;
  end
  phi = 2 ^ (n - 1) * a(:,n) .* u;
  for k = n:-1:2, phi = (asin (c(:,k) .* sin (phi) ./ a(:,k)) + phi) / 2; end
  sn = sin (phi);
  cn = cos (phi);
  dn = sqrt (1 - m .* sn .^ 2);
  one = m == 1;
  sn(one) = tanh (u(one));
  cn(one) = dn(one) = sech (u(one));
  sn(unknown) = cn(unknown) = dn(unknown) = NaN;
end

function [k, e] = ellipke (m)
  % By the arithmetic-geometric mean.
  if nargin < 1, print_usage (); end
  if ! isreal (m), error ("ellipke: M must be real"); end
  if any (real (m(:)) > 1), error ("ellipke: M must be <= 1"); end
  [k, e] = in_parts (@of_part, double (m));
  if isa (m, "single"), [k, e] = deal (single (k), single (e)); end
end
function [k, e] = of_part (m)
  one = m == 1;
  a = ones (size (m));
  b = sqrt (1 - m);
  c = sqrt (abs (m));
  f = 0.5;
  total = f * c .^ 2 .* (sign (m) + (m == 0));
  b(one) = 1;
  c(one) = 0;
  steps = 0;
  goes_on = abs (c) > eps;
  while any (goes_on)
    steps += 1;
    if steps > 16
      warning ("ellipke: algorithm did not converge in 16 iterations");
      break;
    end
    t = (a + b) / 2;
    f *= 2;
    c(goes_on) = ((a - b) / 2)(goes_on);
    total(goes_on) += f * c(goes_on) .^ 2;
    b(goes_on) = sqrt (a .* b)(goes_on);
    a(goes_on) = t(goes_on);
    goes_on &= abs (c) > eps;
  end
  k = pi ./ (2 * a);
  e = k .* (1 - total);
  k(one) = Inf;
  e(one) = 1;
end

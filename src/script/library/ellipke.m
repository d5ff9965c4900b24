function [k, e] = ellipke (m)
  % By the arithmetic-geometric mean.
  if nargin < 1, print_usage (); end
  if ! isreal (m), error ("ellipke: M must be real"); end
  if any (real (m(:)) > 1), error ("ellipke: M must be <= 1"); end
  k = zeros (size (m));
  e = k;
  for i = 1:numel (m)
    if m(i) == 1, k(i) = Inf; e(i) = 1; continue; end
    a = 1;
    b = sqrt (1 - m(i));
    c = sqrt (abs (m(i)));
    f = 0.5;
    total = f * c ^ 2 * (sign (m(i)) + (m(i) == 0));
    steps = 0;
    while abs (c) > eps
      steps += 1;
      if steps > 16
        warning ("ellipke: algorithm did not converge in 16 iterations");
        break;
      end
      t = (a + b) / 2;
      c = (a - b) / 2;
      f *= 2;
      total += f * c ^ 2;
      b = sqrt (a * b);
      a = t;
    end
    k(i) = pi / (2 * a);
    e(i) = k(i) * (1 - total);
  end
end

function y = sinint (x)
  % Its series near 0; from 4 on by the exponential integral of an imaginary number.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x) || ! isreal (x), error ("sinint: X must be real"); end
  class_ = class (x);
  x = double (x);
  y = zeros (size (x));
  near = abs (x) <= 4;
  term = x(near);
  total = term;
  for k = 1:30
    term = -term .* x(near) .^ 2 / (2 * k * (2 * k + 1));
    total += term / (2 * k + 1);
  end
  y(near) = total;
  far = ! near;
  y(far) = sign (x(far)) .* (pi / 2 + imag (expint_of (abs (x(far)))));
  y(x == Inf) = pi / 2;
  y(x == -Inf) = -pi / 2;
  y(isnan (x)) = NaN;
  if strcmp (class_, "single"), y = single (y); end
end
function e = expint_of (x)
  % E1 (i x) by its continued fraction, from its far end.
  z = 1i * x;
  tail = z;
  for n = 120:-1:1, tail = z + n ./ (1 + n ./ tail); end
  e = exp (-z) ./ tail;
end

function y = sinint (x)
  % Its series near 0; from 4 on by exponential integrals. It is odd.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("sinint: X must be numeric"); end
  class_ = underlyingType (x);
  x = double (x);
  y = zeros (size (x));
  near = abs (x) <= 4;
  term = x(near);
  total = term;
  for k = 1:40
    term = -term .* x(near) .^ 2 / (2 * k * (2 * k + 1));
    total += term / (2 * k + 1);
  end
  y(near) = total;
  far = ! near;
  z = x(far);
  left = real (z) < 0;
  z(left) = -z(left);
  if isreal (x)
    s = pi / 2 + imag (expint (1i * z));
  else
    s = pi / 2 + (expint (1i * z) - expint (-1i * z)) / 2i;
    s(real (z) == 0) = 1i * imag (s(real (z) == 0));
  end
  s(left) = -s(left);
  y(far) = s;
  y(x == 0) = x(x == 0);
  y(x == Inf) = pi / 2;
  y(x == -Inf) = -pi / 2;
  y(isnan (x)) = NaN;
  if strcmp (class_, "single"), y = single (y); end
end

function y = cosint (x)
  % Its series near 0; from 4 on by exponential integrals. Left of 0 it is that on the right, and pi i.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("cosint: X must be numeric"); end
  class_ = underlyingType (x);
  x = double (x);
  left = real (x) < 0 | real (x) == 0 & signbit (real (x));
  below = signbit (imag (x));
  z = x;
  z(left) = -z(left);
  y = zeros (size (x));
  near = abs (z) <= 4;
  term = ones (size (z(near)));
  total = 0.57721566490153286 + log (z(near));
  for k = 1:40
    term = -term .* z(near) .^ 2 / (2 * k * (2 * k - 1));
    total += term / (2 * k);
  end
  y(near) = total;
  far = ! near;
  if isreal (x), y(far) = -real (expint (1i * z(far))); else, y(far) = -(expint (1i * z(far)) + expint (-1i * z(far))) / 2; end
  % On the imaginary axis one of the two integrals is beyond the cut.
  axis_ = far & real (z) == 0;
  y(axis_) = real (y(axis_)) + 1i * pi / 2 * sign (imag (z(axis_)));
  y(abs (x) == Inf & imag (x) == 0) = 0;
  y(isnan (x)) = NaN;
  if any (left(:)), y(left) += pi * 1i * (1 - 2 * below(left)); end
  if strcmp (class_, "single"), y = single (y); end
end

function y = cosint (x)
  % Its series near 0; from 4 on by the exponential integral of an imaginary number. Below 0 it is complex.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x) || ! isreal (x), error ("cosint: X must be real"); end
  class_ = class (x);
  x = double (x);
  size_ = abs (x);
  y = zeros (size (x));
  near = size_ <= 4;
  term = ones (size (x(near)));
  total = 0.57721566490153286 + log (size_(near));
  for k = 1:30
    term = -term .* x(near) .^ 2 / (2 * k * (2 * k - 1));
    total += term / (2 * k);
  end
  y(near) = total;
  far = ! near;
  y(far) = -real (expint_of (size_(far)));
  y(size_ == Inf) = 0;
  y(isnan (x)) = NaN;
  if any (x(:) < 0), y(x < 0) += pi * 1i; end
  if strcmp (class_, "single"), y = single (y); end
end
function e = expint_of (x)
  z = 1i * x;
  tail = z;
  for n = 120:-1:1, tail = z + n ./ (1 + n ./ tail); end
  e = exp (-z) ./ tail;
end

function y = expint (x)
  % E1: by its series near 0 and beside the negative axis, where its imaginary part is -pi; else by its continued fraction.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("expint: X must be numeric"); end
  y = zeros (size (x));
  for k = 1:numel (x), y(k) = one_expint (double (x(k))); end
  if isa (x, "single"), y = single (y); end
end
function y = one_expint (x)
  if x == 0, y = Inf; return; end
  if isnan (x), y = NaN; return; end
  if x == Inf, y = 0; return; end
  if x == -Inf, y = complex (-Inf, -pi); return; end
  if abs (x) < 2 || abs (x) + real (x) < 3
    total = 0;
    term = 1;
    for n = 1:1000
      term *= -x / n;
      total -= term / n;
      if n > abs (x) && abs (term) < eps * abs (total) / 4, break; end
    end
    y = -0.57721566490153286061 - log (x) + total;
    if isreal (x) && x < 0, y = real (y) - 1i * pi; end
    return
  end
  b = x + 1;
  c = 1e300;
  d = 1 / b;
  y = d;
  for i = 1:10000
    b += 2;
    d = 1 / (b - i * i * d);
    c = b - i * i / c;
    y *= c * d;
    if abs (c * d - 1) < eps, break; end
  end
  y *= exp (-x);
end

function y = expint (x)
  % E1: by its series near 0 and beside the negative axis, where its imaginary part is -pi; else by its continued fraction.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("expint: X must be numeric"); end
  y = in_parts (@of_part, double (x));
  if isa (x, "single"), y = single (y); end
end
function y = of_part (x)
  y = NaN (size (x));
  y(x == 0) = Inf;
  y(x == Inf) = 0;
  if any (x == -Inf), y(x == -Inf) = complex (-Inf, -pi); end
  known = ! (isnan (x) | x == 0 | isinf (x) & imag (x) == 0);
  near = known & (abs (x) < 2 | abs (x) + real (x) < 3);
  if any (near), y(near) = series (x(near)); end
  far = known & ! near;
  if any (far), y(far) = fraction (x(far)) .* exp (-x(far)); end
end
function y = series (x)
  y = -0.57721566490153286061 - log (x);
  left = (1:numel (x))';
  z = x;
  total = zeros (size (x));
  term = ones (size (x));
  for n = 1:1000
    term .*= -z / n;
    total -= term / n;
    goes_on = ! (n > abs (z) & abs (term) < eps * abs (total) / 4);
    if n == 1000, goes_on(:) = false; end
    if all (goes_on), continue, end
    y(left(! goes_on)) += total(! goes_on);
    if ! any (goes_on), break, end
    [left, z, total, term] = deal (left(goes_on), z(goes_on), total(goes_on), term(goes_on));
  end
  cut = imag (x) == 0 & real (x) < 0;
  if any (cut), y(cut) = real (y(cut)) - 1i * pi; end
end
function whole = fraction (x)
  whole = zeros (size (x));
  if isempty (x), return; end
  left = (1:numel (x))';
  b = x + 1;
  c = repmat (1e300, size (x));
  d = 1 ./ b;
  y = d;
  for i = 1:10000
    b += 2;
    d = 1 ./ (b - i * i * d);
    c = b - i * i ./ c;
    y .*= c .* d;
    goes_on = ! (abs (c .* d - 1) < eps);
    if i == 10000, goes_on(:) = false; end
    if all (goes_on), continue, end
    whole(left(! goes_on)) = y(! goes_on);
    if ! any (goes_on), return, end
    [left, b, c, d, y] = deal (left(goes_on), b(goes_on), c(goes_on), d(goes_on), y(goes_on));
  end
end

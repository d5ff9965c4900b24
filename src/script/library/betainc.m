function y = betainc (x, a, b, tail)
  % By its continued fraction, on the side where that converges fast.
  if nargin < 3, print_usage (); end
  if nargin < 4, tail = "lower"; end
  tail = lower (tail);
  if ! any (strcmp (tail, {"lower", "upper"})), error ("betainc: invalid value for TAIL"); end
  [differ, x, a, b] = common_size (x, a, b);
  if differ, error ("betainc: X, A, and B must be of common size or scalars"); end
  if ! (isreal (x) && isreal (a) && isreal (b)), error ("betainc: all inputs must be real"); end
  if any (x(:) < 0 | x(:) > 1), error ("betainc: X must be in the range [0, 1]"); end
  if any (a(:) <= 0), error ("betainc: A must be strictly positive"); end
  if any (b(:) <= 0), error ("betainc: B must be strictly positive"); end
  class_ = "double";
  if isa (x, "single") || isa (a, "single") || isa (b, "single"), class_ = "single"; end
  [x, a, b] = deal (double (x), double (a), double (b));
  y = zeros (size (x));
  for k = 1:numel (x), y(k) = one_betainc (x(k), 1 - x(k), a(k), b(k), strcmp (tail, "upper")); end
  y = cast (y, class_);
end
function p = one_betainc (x, rest, a, b, upper)
  if isnan (x) || isnan (a) || isnan (b) || isinf (a) && isinf (b), p = NaN; return; end
  if x == 0 || x < 1 && isinf (a), p = 0 + upper; return; end
  if x == 1 || isinf (b), p = 1 - upper; return; end
  if x > (a + 1) / (a + b + 2)
    p = one_betainc (rest, x, b, a, ! upper);
    return
  end
  front = gamma_weight (a, x, b, rest) * b / (a + b);
  tiny = 1e-300;
  c = 1;
  d = 1 - (a + b) * x / (a + 1); if abs (d) < tiny, d = tiny; end
  d = 1 / d;
  h = d;
  for m = 1:10000
    e = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m));
    d = 1 + e * d; if abs (d) < tiny, d = tiny; end
    c = 1 + e / c; if abs (c) < tiny, c = tiny; end
    d = 1 / d;
    h *= d * c;
    e = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1));
    d = 1 + e * d; if abs (d) < tiny, d = tiny; end
    c = 1 + e / c; if abs (c) < tiny, c = tiny; end
    d = 1 / d;
    h *= d * c;
    if abs (d * c - 1) < eps, break; end
  end
  p = front * h;
  if upper, p = 1 - p; end
end

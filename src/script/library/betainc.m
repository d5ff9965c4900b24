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
  y = cast (in_parts (@(x, a, b) of_part (x, a, b, strcmp (tail, "upper")), x, a, b), class_);
end
function p = of_part (x, a, b, upper)
  p = NaN (size (x));
  known = ! (isnan (x) | isnan (a) | isnan (b) | isinf (a) & isinf (b));
  none = known & (x == 0 | x < 1 & isinf (a));
  all_ = known & ! none & (x == 1 | isinf (b));
  p(none) = 0 + upper;
  p(all_) = 1 - upper;
  k = find (known & ! none & ! all_);
  [x, a, b] = deal (x(k), a(k), b(k));
  turned = x > (a + 1) ./ (a + b + 2);
  rest = 1 - x;
  [x(turned), rest(turned)] = deal (rest(turned), x(turned));
  [a(turned), b(turned)] = deal (b(turned), a(turned));
  q = gamma_weight (a, x, b, rest) .* b ./ (a + b) .* fraction (x, a, b);
  others = turned != upper;
  q(others) = 1 - q(others);
  p(k) = q;
end
function whole = fraction (x, a, b)
  whole = zeros (size (x));
  if isempty (x), return; end
  left = (1:numel (x))';
  tiny = 1e-300;
  c = ones (size (x));
  d = 1 - (a + b) .* x ./ (a + 1); d(abs (d) < tiny) = tiny;
  d = 1 ./ d;
  h = d;
  for m = 1:10000
    e = m * (b - m) .* x ./ ((a + 2*m - 1) .* (a + 2*m));
    d = 1 + e .* d; d(abs (d) < tiny) = tiny;
    c = 1 + e ./ c; c(abs (c) < tiny) = tiny;
    d = 1 ./ d;
    h .*= d .* c;
    e = -(a + m) .* (a + b + m) .* x ./ ((a + 2*m) .* (a + 2*m + 1));
    d = 1 + e .* d; d(abs (d) < tiny) = tiny;
    c = 1 + e ./ c; c(abs (c) < tiny) = tiny;
    d = 1 ./ d;
    h .*= d .* c;
    goes_on = ! (abs (d .* c - 1) < eps);
    if m == 10000, goes_on(:) = false; end
    if all (goes_on), continue, end
    whole(left(! goes_on)) = h(! goes_on);
    if ! any (goes_on), return, end
    [left, x, a, b] = deal (left(goes_on), x(goes_on), a(goes_on), b(goes_on));
    [c, d, h] = deal (c(goes_on), d(goes_on), h(goes_on));
  end
end

function x = betaincinv (y, a, b, tail)
  % By halving an interval that holds it, then by Newton's steps where they stay within.
  if nargin < 3, print_usage (); end
  if nargin < 4, tail = "lower"; end
  if ! any (strcmp (tail, {"lower", "upper"})), error ("betaincinv: invalid value for TAIL"); end
  [differ, y, a, b] = common_size (y, a, b);
  if differ, error ("betaincinv: Y, A, and B must be of common size or scalars"); end
  if ! (isfloat (y) && isfloat (a) && isfloat (b) && isreal (y) && isreal (a) && isreal (b))
    error ("betaincinv: Y, A, and B must be real, floating point values");
  end
  if any (y(:) < 0 | y(:) > 1), error ("betaincinv: Y must be in the range [0, 1]"); end
  if any (a(:) <= 0), error ("betaincinv: A must be strictly positive"); end
  if any (b(:) <= 0), error ("betaincinv: B must be strictly positive"); end
  class_ = "double";
  if isa (y, "single") || isa (a, "single") || isa (b, "single"), class_ = "single"; end
  x = cast (in_parts (@(y, a, b) of_part (y, a, b, tail), double (y), double (a), double (b)), class_);
end
function x = of_part (y, a, b, tail)
  upper = strcmp (tail, "upper");
  x = NaN (size (y));
  known = ! isnan (y) & isfinite (a) & isfinite (b);
  x(known & y == upper) = 0;
  x(known & y == ! upper) = 1;
  left = find (known & y > 0 & y < 1);
  [y, a, b] = deal (y(left), a(left), b(left));
  sign_ = 1 - 2 * upper;
  off = @(x, y, a, b) sign_ * (betainc (x, a, b, tail) - y);
  slope = @(x, y, a, b) exp ((a - 1) .* log (x) + (b - 1) .* log1p (-x) - betaln (a, b));
  x(left) = root_between (off, slope, zeros (size (y)), ones (size (y)), y, a, b);
end

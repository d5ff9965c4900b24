function x = gammaincinv (y, a, tail)
  % By halving an interval that holds it, then by Newton's steps where they stay within.
  if nargin < 2, print_usage (); end
  if nargin < 3, tail = "lower"; end
  if ! any (strcmp (tail, {"lower", "upper"})), error ("gammaincinv: invalid value for TAIL"); end
  [differ, y, a] = common_size (y, a);
  if differ, error ("gammaincinv: Y and A must be of common size or scalars"); end
  if ! (isreal (y) && isreal (a)), error ("gammaincinv: all inputs must be real"); end
  if any (y(:) < 0 | y(:) > 1), error ("gammaincinv: Y must be in the range [0, 1]"); end
  if any (a(:) <= 0), error ("gammaincinv: A must be strictly positive"); end
  class_ = "double";
  if isa (y, "single") || isa (a, "single"), class_ = "single"; end
  x = cast (in_parts (@(y, a) of_part (y, a, tail), double (y), double (a)), class_);
end
function x = of_part (y, a, tail)
  upper = strcmp (tail, "upper");
  x = NaN (size (y));
  known = ! isnan (y) & isfinite (a);
  x(known & y == upper) = 0;
  x(known & y == ! upper) = Inf;
  left = find (known & y > 0 & y < 1);
  [y, a] = deal (y(left), a(left));
  sign_ = 1 - 2 * upper;
  below = zeros (size (y));
  above = max (1, a);
  short = (1:numel (y))';
  while ! isempty (short)
    short = short(sign_ * (gammainc (above(short), a(short), tail) - y(short)) < 0);
    below(short) = above(short);
    above(short) *= 2;
    short = short(isfinite (above(short)));
  end
  off = @(x, y, a) sign_ * (gammainc (x, a, tail) - y);
  slope = @(x, y, a) exp ((a - 1) .* log (x) - x - gammaln (a));
  x(left) = root_between (off, slope, below, above, y, a);
end

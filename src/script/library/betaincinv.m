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
  x = zeros (size (y));
  for k = 1:numel (y), x(k) = one (double (y(k)), double (a(k)), double (b(k)), strcmp (tail, "upper")); end
  x = cast (x, class_);
end
function x = one (y, a, b, upper)
  tail = "lower";
  if upper, tail = "upper"; end
  if isnan (y) || ! isfinite (a) || ! isfinite (b), x = NaN; return; end
  if y == upper, x = 0; return; end
  if y == ! upper, x = 1; return; end
  sign_ = 1 - 2 * upper;
  below = 0;
  above = 1;
  x = 0.5;
  for step = 1:200
    off = sign_ * (betainc (x, a, b, tail) - y);
    if off == 0, break; end
    if off > 0, above = x; else, below = x; end
    next = x - off / exp ((a - 1) * log (x) + (b - 1) * log1p (-x) - betaln (a, b));
    if ! (next > below && next < above)
      next = (below + above) / 2;
      if below > 0 && above > 4 * below, next = sqrt (below * above); elseif below == 0, next = above / 16; end
    end
    if abs (next - x) <= eps (x), x = next; break; end
    x = next;
  end
end

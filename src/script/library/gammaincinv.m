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
  x = zeros (size (y));
  for k = 1:numel (y), x(k) = one (double (y(k)), double (a(k)), strcmp (tail, "upper")); end
  x = cast (x, class_);
end
function x = one (y, a, upper)
  tail = "lower";
  if upper, tail = "upper"; end
  if isnan (y) || ! isfinite (a), x = NaN; return; end
  if y == upper, x = 0; return; end
  if y == ! upper, x = Inf; return; end
  sign_ = 1 - 2 * upper;
  below = 0;
  above = max (1, a);
  while isfinite (above) && sign_ * (gammainc (above, a, tail) - y) < 0, below = above; above *= 2; end
  x = (below + above) / 2;
  for step = 1:200
    off = sign_ * (gammainc (x, a, tail) - y);
    if off == 0, break; end
    if off > 0, above = x; else, below = x; end
    next = x - off / exp ((a - 1) * log (x) - x - gammaln (a));
    if ! (next > below && next < above)
      next = (below + above) / 2;
      if below > 0 && above > 4 * below, next = sqrt (below * above); elseif below == 0, next = above / 16; end
    end
    if abs (next - x) <= eps (x), x = next; break; end
    x = next;
  end
end

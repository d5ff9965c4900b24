function y = gammainc (x, a, tail)
  % By its series below a + 1, by its continued fraction above. Below 0 it is complex, but for whole A.
  if nargin < 2, print_usage (); end
  if nargin < 3, tail = "lower"; end
  tail = lower (tail);
  if ! any (strcmp (tail, {"lower", "upper", "scaledlower", "scaledupper"}))
    error ("gammainc: invalid value for TAIL");
  end
  if ! (isreal (x) && isreal (a)), error ("gammainc: all inputs must be real"); end
  if any (a(:) < 0), error ("gammainc: A must be non-negative"); end
  [differ, x, a] = common_size (x, a);
  if differ, error ("gammainc: X and A must be of common size or scalars"); end
  class_ = "double";
  if isa (x, "single") || isa (a, "single"), class_ = "single"; end
  [x, a] = deal (double (x), double (a));
  upper = any (strcmp (tail, {"upper", "scaledupper"}));
  scaled = strncmp (tail, "scaled", 6);
  y = cast (in_parts (@(x, a) of_part (x, a, upper, scaled), x, a), class_);
end
function p = of_part (x, a, upper, scaled)
  p = NaN (size (x));
  known = ! (isnan (x) | isnan (a));
  ends = known & (x == 0 | ! isfinite (x) | isinf (a) | a == 0 & ! scaled);
  p(ends) = at_end (x(ends), a(ends), upper, scaled);
  known &= ! ends;
  below = known & x < 0;
  far = known & ! below & (x >= a + 1 | upper & a < 1 & x > 0.25);
  near = known & ! below & ! far;
  k = find (far);
  p(k) = combined (fraction (x(k), a(k)), gamma_weight (a(k), x(k)), upper, scaled);
  k = find (near);
  p(k) = combined (series (x(k), a(k)), gamma_weight (a(k), x(k)), ! upper, scaled);
  if any (below), p(below) = left_of_zero (x(below), a(below), upper, scaled); end
end
function p = combined (part, weight, is_asked, scaled)
  % PART of the whole integral in units of WEIGHT: what is asked for, or the rest of the whole.
  if is_asked
    p = part;
    if ! scaled, p .*= weight; end
  elseif scaled
    p = 1 ./ weight - part;
  else
    p = 1 - weight .* part;
  end
end
function p = left_of_zero (x, a, upper, scaled)
  p = zeros (size (x));
  whole = a == fix (a);
  weight = complex (x) .^ a .* exp (-x) ./ gamma (a + 1);
  sums = upper & whole & a < 170;
  k = find (sums);
  p(k) = combined (finite_sum (x(k), a(k)), weight(k), true, scaled);
  k = find (! sums);
  p(k) = combined (below_zero (x(k), a(k)), weight(k), ! upper, scaled);
  if all (whole), p = real (p); else, p(whole) = real (p(whole)); end
end
function p = at_end (x, a, upper, scaled)
  if scaled
    p = double (isinf (a));
    p(isinf (a) == upper) = Inf;
    p(x == 0) = 1 - upper;
    if upper, p(x == 0 & a > 0) = Inf; end
    p(x == -Inf) = NaN;
  else
    p = repmat (1 - upper, size (x));
    p(isinf (a) | x == 0 & a > 0) = upper;
    p(x == -Inf) = NaN;
    p(x == -Inf & mod (a, 2) == 0) = Inf * (1 - 2 * upper);
  end
end
function total = series (x, a)
  % The lower integral over x^a exp (-x) / gamma (a + 1).
  total = zeros (size (x));
  left = (1:numel (x))';
  term = so_far = ones (size (x));
  while ! isempty (left)
    a++;
    term .*= x ./ a;
    so_far += term;
    goes_on = abs (term) > abs (so_far) * eps / 4;
    if all (goes_on), continue, end
    total(left(! goes_on)) = so_far(! goes_on);
    [left, x, a, term, so_far] = deal (left(goes_on), x(goes_on), a(goes_on), term(goes_on), so_far(goes_on));
  end
end
function total = below_zero (x, a)
  % The same for negative X: all terms are positive.
  total = term = ones (size (x));
  goes_on = true (size (x));
  n = 0;
  while any (goes_on)
    n++;
    term(goes_on) .*= -x(goes_on) / n;
    total(goes_on) += term(goes_on) .* a(goes_on) ./ (a(goes_on) + n);
    goes_on &= (abs (term) > abs (total) * eps / 4 | n < -x) & isfinite (term);
  end
  total .*= exp (x);
end
function total = finite_sum (x, a)
  % The upper integral of a whole A over the same.
  term = ones (size (x));
  total = zeros (size (x));
  for k = 0:max (a) - 1
    goes_on = a > k;
    term(goes_on) .*= (a(goes_on) - k) ./ x(goes_on);
    total(goes_on) += term(goes_on);
  end
end
function whole = fraction (x, a)
  % The upper integral over the same.
  whole = zeros (size (x));
  if isempty (x), return; end
  left = (1:numel (x))';
  tiny = 1e-300;
  b = x + 1 - a;
  c = repmat (1 / tiny, size (x));
  d = 1 ./ b;
  h = d;
  for i = 1:10000
    an = -i * (i - a);
    b += 2;
    d = an .* d + b; d(abs (d) < tiny) = tiny;
    c = b + an ./ c; c(abs (c) < tiny) = tiny;
    d = 1 ./ d;
    h .*= d .* c;
    goes_on = ! (abs (d .* c - 1) < eps);
    if all (goes_on) && i < 10000, continue, end
    if i == 10000, goes_on(:) = false; end
    done = ! goes_on;
    whole(left(done)) = h(done) .* a(done);
    if ! any (goes_on), return, end
    [left, a, b, c, d, h] = deal (left(goes_on), a(goes_on), b(goes_on), c(goes_on), d(goes_on), h(goes_on));
  end
end

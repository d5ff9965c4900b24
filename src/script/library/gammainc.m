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
  y = zeros (size (x));
  upper = any (strcmp (tail, {"upper", "scaledupper"}));
  scaled = strncmp (tail, "scaled", 6);
  for k = 1:numel (x), y(k) = one_gammainc (x(k), a(k), upper, scaled); end
  y = cast (y, class_);
end
function p = one_gammainc (x, a, upper, scaled)
  if isnan (x) || isnan (a), p = NaN; return; end
  if x == 0 || ! isfinite (x) || isinf (a) || a == 0 && ! scaled, p = at_end (x, a, upper, scaled); return; end
  if x < 0
    of_upper = upper && a == fix (a) && a < 170;
    if of_upper, part = finite_sum (x, a); else, part = below_zero (x, a); end
    weight = complex (x) ^ a * exp (-x) / gamma (a + 1);
  elseif x >= a + 1 || upper && a < 1 && x > 0.25
    part = fraction (x, a);
    of_upper = true;
    weight = gamma_weight (a, x);
  else
    part = series (x, a);
    of_upper = false;
    weight = gamma_weight (a, x);
  end
  if upper == of_upper
    p = part;
    if ! scaled, p *= weight; end
  elseif scaled
    p = 1 / weight - part;
  else
    p = 1 - weight * part;
  end
  if a == fix (a), p = real (p); end
end
function p = at_end (x, a, upper, scaled)
  if x == -Inf
    p = NaN;
    if mod (a, 2) == 0 && ! scaled, p = Inf * (1 - 2 * upper); end
  elseif scaled && x == 0
    if upper && a > 0, p = Inf; else, p = 1 - upper; end
  elseif scaled
    if isinf (a) == upper, p = Inf; else, p = 0 + isinf (a); end
  elseif isinf (a) || x == 0 && a > 0
    p = 0 + upper;
  else
    p = 1 - upper;
  end
end
function total = series (x, a)
  % The lower integral over x^a exp (-x) / gamma (a + 1).
  total = 1;
  term = 1;
  n = a;
  while abs (term) > abs (total) * eps / 4
    n++;
    term *= x / n;
    total += term;
  end
end
function total = below_zero (x, a)
  % The same for negative X: all terms are positive.
  if a == 0, total = exp (x); return; end
  total = 1;
  term = 1;
  n = 0;
  while abs (term) > abs (total) * eps / 4 || n < -x
    n++;
    term *= -x / n;
    total += term * a / (a + n);
  end
  total *= exp (x);
end
function total = finite_sum (x, a)
  % The upper integral of a whole A over the same.
  term = 1;
  total = 0;
  for k = a:-1:1
    term *= k / x;
    total += term;
  end
end
function h = fraction (x, a)
  % The upper integral over the same.
  tiny = 1e-300;
  b = x + 1 - a;
  c = 1 / tiny;
  d = 1 / b;
  h = d;
  for i = 1:10000
    an = -i * (i - a);
    b += 2;
    d = an * d + b; if abs (d) < tiny, d = tiny; end
    c = b + an / c; if abs (c) < tiny, c = tiny; end
    d = 1 / d;
    h *= d * c;
    if abs (d * c - 1) < eps, break; end
  end
  h *= a;
end

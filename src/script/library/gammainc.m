function y = gammainc (x, a, tail)
  % By its series below a + 1, by its continued fraction above.
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
  for k = 1:numel (x)
    y(k) = one_gammainc (x(k), a(k), upper);
    if strncmp (tail, "scaled", 6), y(k) = scaled (y(k), x(k), a(k), upper); end
  end
  y = cast (y, class_);
end
function p = scaled (p, x, a, upper)
  if x == 0
    if upper && a > 0, p = Inf; elseif ! upper, p = 1; end
  elseif isinf (x) || isinf (a)
    if isinf (a) == upper, p = Inf; else, p = isinf (a); end
  else
    p *= exp (gammaln (a + 1) + x - a * log (x));
  end
end
function p = one_gammainc (x, a, upper)
  if isnan (x) || isnan (a), p = NaN; return; end
  if isinf (a), p = 0 + upper; return; end
  if a == 0, p = 1 - upper; return; end
  if x <= 0, p = 0 + upper; return; end
  if isinf (x), p = 1 - upper; return; end
  front = exp (-x + a * log (x) - gammaln (a));
  if x < a + 1
    term = 1 / a;
    total = term;
    n = a;
    while abs (term) > abs (total) * eps / 4
      n++;
      term *= x / n;
      total += term;
    end
    p = front * total;
    if upper, p = 1 - p; end
  else
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
    p = front * h;
    if ! upper, p = 1 - p; end
  end
end

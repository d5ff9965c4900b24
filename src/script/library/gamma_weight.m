function w = gamma_weight (a, x, b, y)
  % x^a exp (-x) / gamma (a + 1); of four, x^a y^b gamma (a + b + 1) / (gamma (a + 1) gamma (b + 1)), where x + y is 1.
  % C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000: no large terms that cancel.
  w = zeros (size (x));
  if nargin == 2
    few = a < 10 & x < 700;
    w(few) = x(few) .^ a(few) .* exp (-x(few)) ./ gamma (a(few) + 1);
    [a, x] = deal (a(! few), x(! few));
    w(! few) = exp (-rest (a) - deviance (a, x)) ./ sqrt (2 * pi * a);
    return
  end
  n = a + b;
  few = n < 150;
  w(few) = gamma (n(few) + 1) ./ (gamma (a(few) + 1) .* gamma (b(few) + 1)) .* x(few) .^ a(few) .* y(few) .^ b(few);
  [n, a, x, b, y] = deal (n(! few), a(! few), x(! few), b(! few), y(! few));
  w(! few) = exp (rest (n) - rest (a) - rest (b) - deviance (a, n .* x) - deviance (b, n .* y)) .* sqrt (n ./ (2 * pi * a .* b));
end
function r = rest (n)
  % What Stirling's formula leaves of log (gamma (n + 1)).
  r = zeros (size (n));
  few = n < 10;
  k = n(few);
  r(few) = gammaln (k + 1) - (k + 0.5) .* log (k) + k - log (2 * pi) / 2;
  k = n(! few);
  r(! few) = polyval ([-691/360360, 1/1188, -1/1680, 1/1260, -1/360, 1/12], 1 ./ k .^ 2) ./ k;
end
function d = deviance (k, m)
  % k log (k / m) + m - k, by its series where the two are near.
  d = k .* log (k ./ m) + m - k;
  near = find (abs (k - m) < 0.1 * (k + m));
  [k, m] = deal (k(near), m(near));
  v = (k - m) ./ (k + m);
  total = (k - m) .* v;
  term = 2 * k .* v;
  for j = 3:2:200
    term .*= v .^ 2;
    before = total;
    total += term / j;
    if all (total == before), break; end
  end
  d(near) = total;
end

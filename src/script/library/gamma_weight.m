function w = gamma_weight (a, x, b, y)
  % x^a exp (-x) / gamma (a + 1); of four, x^a y^b gamma (a + b + 1) / (gamma (a + 1) gamma (b + 1)), where x + y is 1.
  % C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000: no large terms that cancel.
  if nargin == 2
    if a < 10 && x < 700
      w = x ^ a * exp (-x) / gamma (a + 1);
    else
      w = exp (-rest (a) - deviance (a, x)) / sqrt (2 * pi * a);
    end
    return
  end
  n = a + b;
  if n < 150
    w = gamma (n + 1) / (gamma (a + 1) * gamma (b + 1)) * x ^ a * y ^ b;
  else
    w = exp (rest (n) - rest (a) - rest (b) - deviance (a, n * x) - deviance (b, n * y)) * sqrt (n / (2 * pi * a * b));
  end
end
function r = rest (n)
  % What Stirling's formula leaves of log (gamma (n + 1)).
  if n < 10
    r = gammaln (n + 1) - (n + 0.5) * log (n) + n - log (2 * pi) / 2;
  else
    r = polyval ([-691/360360, 1/1188, -1/1680, 1/1260, -1/360, 1/12], 1 / n ^ 2) / n;
  end
end
function d = deviance (k, m)
  % k log (k / m) + m - k, by its series where the two are near.
  if abs (k - m) >= 0.1 * (k + m), d = k * log (k / m) + m - k; return; end
  v = (k - m) / (k + m);
  d = (k - m) * v;
  term = 2 * k * v;
  for j = 3:2:200
    term *= v ^ 2;
    before = d;
    d += term / j;
    if d == before, break; end
  end
end

function [x, fval, info, output] = fzero (fcn, x0, options)
  % Brent's method: bisection, secant and inverse quadratic steps on a bracket.
  if nargin < 2, print_usage (); end
  if nargin < 3, options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  tol = optimget (options, "TolX", eps);
  limit = optimget (options, "MaxIter", 1000);
  calls = 0;
  a = x0(1);
  fa = fcn (a); calls++;
  if numel (x0) > 1
    b = x0(2);
    fb = fcn (b); calls++;
  else
    b = a; fb = fa;
    if a == 0, base = 0.1; else, base = abs (a); end
    for step = [-.01, .025, -.05, .1, -.25, .5, -1, 2.5, -5, 10, -50, 100, 500, 1000]
      if fa == 0, break; end
      b = a + base * step;
      fb = fcn (b); calls++;
      if sign (fa) * sign (fb) <= 0, break; end
    end
  end
  if ! (sign (fa) * sign (fb) <= 0)
    error ("Octave:fzero:bracket", "fzero: not a valid initial bracketing");
  end
  c = a; fc = fa; d = b - a; e = d;
  info = 0;
  for iterations = 1:limit
    if sign (fb) == sign (fc), c = a; fc = fa; d = b - a; e = d; end
    if abs (fc) < abs (fb), a = b; b = c; c = a; fa = fb; fb = fc; fc = fa; end
    near = 2 * eps * abs (b) + tol / 2;
    m = (c - b) / 2;
    if abs (m) <= near || fb == 0, info = 1; break; end
    if abs (e) < near || abs (fa) <= abs (fb)
      d = m; e = m;
    else
      s = fb / fa;
      if a == c
        p = 2 * m * s;
        q = 1 - s;
      else
        q = fa / fc;
        r = fb / fc;
        p = s * (2 * m * q * (q - r) - (b - a) * (r - 1));
        q = (q - 1) * (r - 1) * (s - 1);
      end
      if p > 0, q = -q; else, p = -p; end
      if 2 * p < min (3 * m * q - abs (near * q), abs (e * q)), e = d; d = p / q; else, d = m; e = m; end
    end
    a = b; fa = fb;
    if abs (d) > near, b += d; else, b += near * sign (m); end
    fb = fcn (b); calls++;
  end
  x = b;
  fval = fb;
  output = struct ("iterations", iterations, "funcCount", calls, "algorithm", "bisection, interpolation", "bracketx", sort ([b, c]), "brackety", [fb, fc]);
end

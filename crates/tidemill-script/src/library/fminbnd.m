function [x, fval, info, output] = fminbnd (fcn, a, b, options)
  % Brent's method: golden sections and parabolas.
  if nargin < 3, print_usage (); end
  if nargin < 4, options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  if a > b, error ("Octave:invalid-fun-call", "fminbnd: the lower bound is greater than the upper one"); end
  tol = optimget (options, "TolX", 1e-4);
  limit = optimget (options, "MaxIter", Inf);
  golden = (3 - sqrt (5)) / 2;
  v = a + golden * (b - a);
  w = v; x = v;
  e = 0; d = 0;
  fv = fcn (x); fw = fv; fval = fv;
  iterations = 0;
  calls = 1;
  info = 0;
  while iterations < limit
    m = (a + b) / 2;
    near = 2 * sqrt (eps) * abs (x) + tol / 3;
    if abs (x - m) <= 2 * near - (b - a) / 2, info = 1; break; end
    section = true;
    if abs (e) >= near
      r = (x - w) * (fval - fv);
      q = (x - v) * (fval - fw);
      p = (x - v) * q - (x - w) * r;
      q = 2 * (q - r);
      if q > 0, p = -p; end
      q = abs (q);
      r = e;
      e = d;
      if abs (p) < abs (q * r / 2) && p > q * (a - x) && p < q * (b - x)
        d = p / q;
        u = x + d;
        if min (u - a, b - u) < 2 * near, d = near * (sign (m - x) + (m == x)); end
        section = false;
      end
    end
    if section
      if x >= m, e = a - x; else, e = b - x; end
      d = golden * e;
    end
    u = x + max (abs (d), near) * (sign (d) + (d == 0));
    fu = fcn (u);
    calls++;
    iterations++;
    if fu < fval
      if u < x, b = x; else, a = x; end
      v = w; fv = fw; w = x; fw = fval; x = u; fval = fu;
    else
      if u < x, a = u; else, b = u; end
      if fu <= fw || w == x
        v = w; fv = fw; w = u; fw = fu;
      elseif fu <= fv || v == x || v == w
        v = u; fv = fu;
      end
    end
  end
  output = struct ("iterations", iterations, "funcCount", calls, "algorithm", "golden section search, parabolic interpolation", "bracket", [a, b]);
end

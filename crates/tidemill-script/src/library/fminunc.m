function [x, fval, info, output, g, hess] = fminunc (fcn, x0, options)
  % BFGS with a backtracking line search; gradients by central differences unless FCN gives them ("GradObj").
  if nargin < 2, print_usage (); end
  if nargin < 3, options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  given = any (strcmpi (optimget (options, "GradObj", "off"), {"on", "true"}));
  limit = optimget (options, "MaxIter", 400);
  tol = optimget (options, "TolFun", 1e-6);
  x = x0(:);
  n = numel (x);
  f = @(x) fcn (reshape (x, size (x0)));
  if ! given && strcmpi (optimget (options, "FunValCheck", "off"), "on"), f = @(x) checked (f (x)); end
  [fval, g] = value_and_gradient (f, x, given);
  h = eye (n);
  % So many calls give a value with its gradient.
  each = 1 + 2 * n * ! given;
  calls = each;
  successful = 0;
  info = 0;
  for iterations = 1:limit
    if norm (g, Inf) <= 1e-8 * max (1, abs (fval)), info = 1; break; end
    p = -h * g;
    if g' * p >= 0, h = eye (n); p = -g; end
    step = 1;
    while f (x + step * p) > fval + 1e-4 * step * (g' * p) && step > 1e-14, step /= 2; calls++; end
    calls += 1 + each;
    successful++;
    s = step * p;
    [next, gnext] = value_and_gradient (f, x + s, given);
    y = gnext - g;
    x += s;
    done = abs (next - fval) <= tol * 1e-8 * max (1, abs (next)) && norm (s) <= 1e-9 * max (1, norm (x));
    fval = next;
    g = gnext;
    if done, info = 1; break; end
    if y' * s > 1e-14
      r = 1 / (y' * s);
      v = eye (n) - r * s * y';
      h = v * h * v' + r * (s * s');
    end
  end
  x = reshape (x, size (x0));
  g = reshape (g, size (x0));
  if nargout > 5, hess = inv (h); end
  output = struct ("iterations", iterations, "successful", successful, "funcCount", calls);
end
function [v, g] = value_and_gradient (f, x, given)
  if given
    [v, g] = f (x);
    g = g(:);
    return
  end
  v = f (x);
  g = zeros (size (x));
  for k = 1:numel (x)
    d = zeros (size (x));
    d(k) = eps ^ (1/3) * max (1, abs (x(k)));
    g(k) = (f (x + d) - f (x - d)) / (2 * d(k));
  end
end
function v = checked (v)
  if ! isreal (v), error ("fminunc: non-real value encountered"); end
  if any (isnan (v(:))), error ("fminunc: NaN value encountered"); end
  if any (isinf (v(:))), error ("fminunc: Inf value encountered"); end
end

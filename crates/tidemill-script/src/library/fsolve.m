function [x, fval, info, output, j] = fsolve (fcn, x0, options)
  % Levenberg and Marquardt's steps; the Jacobian by differences unless FCN gives it ("Jacobian").
  if nargin < 2, print_usage (); end
  if nargin < 3, options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  given = any (strcmpi (optimget (options, "Jacobian", "off"), {"on", "true"}));
  limit = optimget (options, "MaxIter", 400);
  x = x0(:);
  shape = size (x0);
  f = @(x) fcn (reshape (x, shape))(:);
  v = f (x);
  lambda = 1e-6;
  calls = 1;
  successful = 0;
  info = 0;
  for iterations = 1:limit
    if given
      [~, j] = fcn (reshape (x, shape));
      calls++;
    else
      calls += numel (x);
      j = zeros (numel (v), numel (x));
      for k = 1:numel (x)
        d = zeros (size (x));
        d(k) = sqrt (eps) * max (1, abs (x(k)));
        j(:,k) = (f (x + d) - v) / d(k);
      end
    end
    if norm (v, Inf) <= 1e-14, info = 1; break; end
    better = false;
    for attempt = 1:40
      s = -[j; sqrt(lambda) * eye(numel (x))] \ [v; zeros(numel (x), 1)];
      w = f (x + s);
      calls++;
      if norm (w) < norm (v), better = true; lambda /= 10; break; end
      lambda = max (lambda, 1e-12) * 10;
    end
    if ! better
      info = 1 - 3 * (norm (v) > 1e-5);
      break
    end
    x += s;
    v = w;
    successful++;
    if norm (s) <= eps * max (1, norm (x)), info = 1; break; end
  end
  x = reshape (x, shape);
  fval = fcn (x);
  output = struct ("iterations", iterations, "successful", successful, "funcCount", calls);
end

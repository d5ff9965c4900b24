% bracketing methods: compare
1;
function varargout = bisect (f, a, b, varargin)
  opts.tol = 1e-8;
  opts.verbose = false;
  for k = 1:2:numel (varargin)
    opts.(varargin{k}) = varargin{k+1};
  end
  fa = f (a); fb = f (b);
  if sign (fa) * sign (fb) > 0
    error ('bisect:bracket', 'f(%g) = %g and f(%g) = %g have the same sign', a, fa, b, fb);
  end
  n = 0;
  while (b - a) / 2 > opts.tol
    c = (a + b) / 2; fc = f (c); n++;
    if fc == 0, break, end
    if sign (fc) == sign (fa)
      a = c; fa = fc;
    else
      b = c; fb = fc;
    endif
    if opts.verbose
      fprintf ('%3d [%10.6f, %10.6f]\n', n, a, b);
    end
  endwhile
  varargout{1} = (a + b) / 2;
  if nargout > 1, varargout{2} = n; end
  if nargout > 2, varargout{3} = opts; end
end
f = @(x) exp (-x) - x;
[x, n, o] = bisect (f, 0, 1, 'tol', 1e-3, 'verbose', true)
x = bisect (f, 0, 1)
try
  bisect (@(x) x.^2 + 1, -1, 1);
catch err
  disp (err.identifier); disp (err.message);
end
% secant
x0 = 0; x1 = 1; k = 0;
do
  x2 = x1 - f(x1) * (x1 - x0) / (f(x1) - f(x0));
  x0 = x1; x1 = x2; k += 1;
until abs (x1 - x0) < 1e-12 || k > 100
printf ('%d: %.12f\n', k, x1);
% regula falsi keeps the history as a matrix
T = zeros (0, 3); a = 0; b = 1;
for k = 1:6
  c = (a*f(b) - b*f(a)) / (f(b) - f(a));
  if f(a) * f(c) < 0, b = c; else, a = c; end
  T(end+1, :) = [a b c];
end
T
size (T)

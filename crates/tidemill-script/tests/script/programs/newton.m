% Newton's method with derivative and a table of iterates
1;
function [x, its, hist] = newton (f, df, x0, tol, maxit)
  if nargin < 4 || isempty (tol), tol = 1e-12; end
  if nargin < 5, maxit = 50; end
  x = x0; hist = x;
  for its = 1:maxit
    dx = f(x) / df(x);
    x = x - dx;
    hist(end+1) = x; %#ok
    if abs (dx) < tol * max (1, abs (x)), return; end
  end
  warning ('newton:noconv', 'no convergence after %d iterations', maxit);
end
f  = @(x) x.^3 - 2*x - 5;
df = @(x) 3*x.^2 - 2;
[r, n, h] = newton (f, df, 2)
fprintf ('%2d  %.15f  %10.3e\n', [0:n; h; f(h)]);
format long
r
err = h - r
format short
[r2, n2] = newton (@(x) cos (x) - x, @(x) -sin (x) - 1, 1, [], 20);
printf ("root %.10g in %d its\n", r2, n2);
[r3, n3] = newton (@(x) x.^2 + 1, @(x) 2*x, 0.5, 1e-10, 5);
disp (n3)
z = newton (@(x) x.^3 - 1, @(x) 3*x.^2, -1+1i)
abs (z^3 - 1) < 1e-10
roots_found = arrayfun (@(x0) newton (@(x) x^3 - x, @(x) 3*x^2 - 1, x0), [-2 -0.1 3])

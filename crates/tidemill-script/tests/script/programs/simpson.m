% Adaptive quadrature by recursion, rules on samples, Gauss-Legendre points.
1;
function [q, cnt] = adsimp (f, a, b, tol)
  c = (a+b)/2;
  [q, cnt] = step_ (f, a, b, f(a), f(c), f(b), tol, 0);
  cnt += 3;
end
function [q, cnt] = step_ (f, a, b, fa, fc, fb, tol, depth)
  c = (a+b)/2; h = b - a;
  fd = f((a+c)/2); fe = f((c+b)/2); cnt = 2;
  q1 = h/6*(fa + 4*fc + fb);
  q2 = h/12*(fa + 4*fd + 2*fc + 4*fe + fb);
  if abs (q2 - q1) < 15*tol || depth > 40
    q = q2 + (q2 - q1)/15;
  else
    [ql, nl] = step_ (f, a, c, fa, fd, fc, tol/2, depth+1);
    [qr, nr] = step_ (f, c, b, fc, fe, fb, tol/2, depth+1);
    q = ql + qr; cnt = cnt + nl + nr;
  end
end
[q, n] = adsimp (@(x) sqrt (x), 0, 1, 1e-8)
printf ("%.12f\n", adsimp (@sin, 0, pi, 1e-10));
funs = {@(x) x.^2, @exp, @(x) 1./(1+25*x.^2), @abs};
for k = 1:numel (funs)
  fprintf ('%-22s %.8f\n', func2str (funs{k}), adsimp (funs{k}, -1, 1, 1e-9));
end
x = linspace (0, pi, 11); y = sin (x);
trapz (x, y)
cumtrapz (x, y)
w = ones (1, 11); w(2:2:end-1) = 4; w(3:2:end-2) = 2;
w
h = x(2) - x(1);
S = h/3 * w * y'
% Gauss-Legendre by Golub-Welsch
n = 5; be = 0.5 ./ sqrt (1 - (2*(1:n-1)).^(-2));
J = diag (be, 1) + diag (be, -1);
[V, D] = eig (J); [xg, i] = sort (diag (D)); wg = 2*V(1,i).^2;
xg(abs (xg) < 1e-12) = 0;
xg', wg
wg * exp (xg) - (e - 1/e) < 1e-10

% embedded Runge-Kutta 2(3), adaptive steps, stored in growing cell and struct
f = @(t, y) -50 * (y - cos (t));
t = 0; y = 0; h = 0.1; tol = 1e-4;
steps = struct ('t', {}, 'h', {}, 'err', {});
rejected = 0;
while t < 1.5
  if t + h > 1.5, h = 1.5 - t; end
  k1 = f (t, y);
  k2 = f (t + h, y + h*k1);
  k3 = f (t + h/2, y + h*(k1 + k2)/4);
  e = h * abs (k1 - 2*k3 + k2) / 3;
  if e <= tol
    t += h;
    y = y + h * (k1 + k2 + 4*k3) / 6;
    steps(end+1) = struct ('t', t, 'h', h, 'err', e);
  else
    rejected++;
  end
  h = h * min (5, max (0.2, 0.9 * (tol / max (e, 1e-16))^(1/3)));
  if h < 1e-10, error ('step too small'); end
end
numel (steps)
rejected
steps(1:2)
steps(end)
hs = [steps.h];
[hmin, imin] = min (hs);
printf ("smallest step %.3e at t=%.4f\n", hmin, steps(imin).t);
mean ([steps.err])
abs (y - cos (1.5)) < 0.05

% Runge-Kutta 4 for the Lotka-Volterra system
1;
function [t, y] = rk4 (f, tspan, y0, n)
  h = (tspan(2) - tspan(1)) / n;
  t = linspace (tspan(1), tspan(2), n+1)';
  y = zeros (n+1, numel (y0));
  y(1, :) = y0(:)';
  for i = 1:n
    k1 = f (t(i),       y(i, :)');
    k2 = f (t(i) + h/2, y(i, :)' + h/2*k1);
    k3 = f (t(i) + h/2, y(i, :)' + h/2*k2);
    k4 = f (t(i) + h,   y(i, :)' + h*k3);
    y(i+1, :) = y(i, :) + (h/6 * (k1 + 2*k2 + 2*k3 + k4))';
  end
end
alpha = 1.1; beta = 0.4; delta = 0.1; gam = 0.4;
lv = @(t, y) [alpha*y(1) - beta*y(1)*y(2); ...
              delta*y(1)*y(2) - gam*y(2)];
[t, y] = rk4 (lv, [0 20], [10; 10], 400);
idx = 1:80:numel (t);
[t(idx) y(idx, :)]
V = delta*y(:,1) - gam*log (y(:,1)) + beta*y(:,2) - alpha*log (y(:,2));
drift = max (abs (V - V(1)));
assert (drift < 1e-3);
printf ("drift %.2e, prey in [%.4f, %.4f]\n", drift, min (y(:,1)), max (y(:,1)));
% order of convergence on y' = -y
ns = 2.^(2:7);
E = zeros (size (ns));
for k = 1:numel (ns)
  [~, u] = rk4 (@(t,y) -y, [0 1], 1, ns(k));
  E(k) = abs (u(end) - exp (-1));
end
E
order = log2 (E(1:end-1) ./ E(2:end))
% pendulum
p = @(t, y) [y(2); -sin(y(1))];
[t, y] = rk4 (p, [0, 10], [pi/4, 0], 100);
y(end,:)
energy = y(:,2).^2/2 - cos (y(:,1));
any (abs (diff (energy)) > 1e-5)

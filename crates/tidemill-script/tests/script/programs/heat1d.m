% explicit, implicit heat equation in 1-D
nx = 21; L = 1; dx = L / (nx - 1); x = linspace (0, L, nx);
alpha = 0.01; dt = 0.4 * dx^2 / alpha;
u = sin (pi * x) + 0.5 * sin (3 * pi * x);
u0 = u;
for n = 1:50
  u(2:end-1) = u(2:end-1) + alpha*dt/dx^2 * (u(3:end) - 2*u(2:end-1) + u(1:end-2));
end
u
exact = exp (-alpha*pi^2*50*dt) * sin (pi*x) + 0.5 * exp (-9*alpha*pi^2*50*dt) * sin (3*pi*x);
printf ("%.6f ", max (abs (u - exact))); printf ("\n");
% Crank-Nicolson with matrices
r = alpha*dt/dx^2;
A = (1 + r) * eye (nx-2) - r/2 * diag (ones (nx-3, 1), 1) - r/2 * diag (ones (nx-3, 1), -1);
B = (1 - r) * eye (nx-2) + r/2 * diag (ones (nx-3, 1), 1) + r/2 * diag (ones (nx-3, 1), -1);
A(1:4, 1:4)
v = u0(2:end-1)';
for n = 1:50, v = A \ (B*v); end
printf ("%8.5f\n", v(1:5));
norm (v' - exact(2:end-1), Inf) < 1e-3
cond_A = cond (A)

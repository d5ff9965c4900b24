% constant-velocity Kalman filter; measurement sequence fixed
dt = 1; F = [1 dt; 0 1]; H = [1 0]; Q = 0.01 * [dt^4/4 dt^3/2; dt^3/2 dt^2]; R = 0.5;
z = [1.2 1.9 3.1 3.9 5.2 6.1 6.8 8.1 9.0 9.8];
x = [0; 0]; P = 10 * eye (2);
est = zeros (2, numel (z)); gains = [];
for k = 1:numel (z)
  x = F*x; P = F*P*F' + Q;
  S = H*P*H' + R; K = P*H'/S;
  x += K * (z(k) - H*x);
  P = (eye (2) - K*H) * P;
  est(:, k) = x; gains = [gains, K];
end
est
gains(:, end)
P
issymmetric (P), all (eig (P) > 0)
chol (P)
innov = z - H*est;
printf ('rms %.5f\n', sqrt (mean (innov.^2)));
% steady state by Riccati iteration
Pp = eye (2);
for k = 1:500, Pn = F*(Pp - Pp*H'/(H*Pp*H' + R)*H*Pp)*F' + Q; if norm (Pn - Pp, 'fro') < 1e-12, break, end, Pp = Pn; end
Kss = Pp*H'/(H*Pp*H' + R)
expm ([0 1; -1 0]), sqrtm ([4 1; 1 3]), kron (eye (2), [1 2]), blkdiag (1, [2 3; 4 5]), logm_free = 1;
A = [1 2; 3 4]; A', A.^2, A^2, A^-1, 2.^A, A.^0.5, A .* A', A ./ [1 2], A \ [5; 6], [5 6] / A, A(:)', A(end, :), ~A, -A, A == A', A > 2

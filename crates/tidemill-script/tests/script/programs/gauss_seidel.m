% Gauss-Seidel, Jacobi and relaxation for a diagonally dominant system.
A = [10 -1 2 0; -1 11 -1 3; 2 -1 10 -1; 0 3 -1 8];
b = [6; 25; -11; 15];
x = zeros (4, 1);
fprintf ('%s\n', 'Gauss-Seidel');
for it = 1:25
  xold = x;
  for i = 1:4
    s = A(i, [1:i-1, i+1:end]) * x([1:i-1, i+1:end]);
    x(i) = (b(i) - s) / A(i,i);
  end
  d = norm (x - xold, inf);
  fprintf ('%2d: %s  d=%g\n', it, sprintf ('%9.6f ', x), d);
  if d < 1e-6; break; end
end
% Jacobi
D = diag (diag (A)); R = A - D; y = 0*b;
for it = 1:100
  yn = D \ (b - R*y);
  if max (abs (yn - y)) < 1e-8, break, end
  y = yn;
end
it, y
% SOR over several omegas: table in a struct
res = struct ();
for w = [0.8 1 1.1 1.25]
  x = zeros (4,1); n = 0;
  while norm (b - A*x) > 1e-8
    for i = 1:4
      x(i) += w * (b(i) - A(i,:)*x) / A(i,i);
    end
    n++;
  end
  res.(sprintf ('w%03d', round (100*w))) = n;
end
res
names = fieldnames (res)
struct2cell (res)

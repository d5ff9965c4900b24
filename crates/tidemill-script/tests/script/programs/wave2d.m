% wave equation in 2-D with slices
n = 17; c = 1; h = 1/(n-1); dt = 0.5*h/c;
[X, Y] = meshgrid (linspace (0,1,n));
U = exp (-100*((X-0.5).^2 + (Y-0.5).^2));
U([1 end], :) = 0; U(:, [1 end]) = 0;
Uold = U;
I = 2:n-1; J = I;
E = [];
for k = 1:40
  Lap = U(I+1,J) + U(I-1,J) + U(I,J+1) + U(I,J-1) - 4*U(I,J);
  Unew = zeros (n);
  Unew(I,J) = 2*U(I,J) - Uold(I,J) + (c*dt/h)^2 * Lap;
  Uold = U; U = Unew;
  if mod (k, 10) == 0
    E = [E; k, sum(U(:).^2), max(U(:)), min(min(U))];
  end
end
E
U(7:9, 7:9)
isequal (U, U'), norm (U - fliplr (U)) < 1e-12
disp (U(9, 1:8));
num2str (U(9,1:4))
mat2str (U(8:9,8:9), 4)

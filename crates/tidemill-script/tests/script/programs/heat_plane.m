% Heat in a plane by slices; the arrays are large enough to live on the runtime.
n = 120;
[X, Y] = meshgrid (linspace (0, 1, n));
U = exp (-50 * ((X - .5).^2 + (Y - .4).^2));
I = 2:n-1;
total = zeros (1, 4);
for k = 1:40
  U(I,I) = U(I,I) + 0.2 * (U(I+1,I) + U(I-1,I) + U(I,I+1) + U(I,I-1) - 4*U(I,I));
  if mod (k, 10) == 0
    total(k/10) = sum (U(:));
  end
end
printf ('%.6f ', total); printf ("\n");
[hottest, at] = max (U(:));
[i, j] = ind2sub (size (U), at);
printf ('%.6f at (%d, %d)\n', hottest, i, j);
disp (size (U)); disp (class (U));
edge = U([1 end], 58:62)
profile = U(60, 20:20:n)
warm = nnz (U > 0.5)

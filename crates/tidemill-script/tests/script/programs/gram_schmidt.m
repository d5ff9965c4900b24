% Factors by the modified Gram-Schmidt process, least squares, an error that is caught.
1;
function [Q, R] = mgs (A)
  [m, n] = size (A);
  Q = zeros (m, n); R = zeros (n);
  for j = 1:n
    v = A(:, j);
    for i = 1:j-1
      R(i,j) = Q(:,i)' * v;
      v = v - R(i,j) * Q(:,i);
    end
    R(j,j) = norm (v);
    if R(j,j) < eps, error ('mgs:rank', 'column %d depends on the columns before it', j); end
    Q(:,j) = v / R(j,j);
  end
end
A = [1 2 3; 4 5 6; 7 8 10; 1 0 1];
[Q, R] = mgs (A)
norm (Q'*Q - eye (3)) < 1e-13
norm (Q*R - A) < 1e-13
[Q2, R2] = qr (A, 0);
max (max (abs (abs (R2) - abs (R)))) < 1e-12
try
  mgs ([1 2; 2 4]);
catch e
  fprintf ('caught: %s (%s)\n', e.message, e.identifier);
  switch e.identifier
    case {'mgs:rank', 'mgs:other'}
      disp ('rank');
    otherwise
      rethrow (e);
  end
end
b = [1;2;3;4];
xls = R \ (Q' * b)
xbs = A \ b
printf ('%g\n', norm (xls - xbs) < 1e-12);
triu (R) == R

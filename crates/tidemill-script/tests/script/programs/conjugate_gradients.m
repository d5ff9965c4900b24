% conjugate gradients with preconditioner
1;
function [x, flag, relres, iter, resvec] = mypcg (A, b, tol, maxit, M)
  if (nargin < 3 || isempty (tol)); tol = 1e-10; end;
  if (~exist ('maxit', 'var') || isempty (maxit)); maxit = numel (b); end;
  if (nargin < 5); M = []; end;
  x = zeros (size (b)); r = b; flag = 1;
  if isempty (M), z = r; else z = M \ r; end
  p = z; rz = r' * z; nb = norm (b); resvec = norm (r);
  for iter = 1:maxit
    Ap = A * p;
    a = rz / (p' * Ap);
    x += a * p; r -= a * Ap;
    resvec(end+1, 1) = norm (r);
    if resvec(end) < tol * nb, flag = 0; break; end
    if isempty (M), z = r; else z = M \ r; end
    rznew = r' * z;
    p = z + rznew/rz * p;
    rz = rznew;
  end
  relres = resvec(end) / nb;
end
n = 10;
A = 2*eye (n) - diag (ones (n-1,1), 1) - diag (ones (n-1,1), -1);
b = (1:n)';
[x, flag, relres, iter] = mypcg (A, b);
flag, iter
relres < 1e-10
x'
[x2, flag2, ~, it2, rv] = mypcg (A, b, 1e-8, 3, diag (diag (A)));
flag2, it2
rv
[q, r] = deal (A(1:2,1:2), b(1:2))

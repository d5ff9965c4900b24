function [x, flag, relres, iter, resvec] = pcg (a, b, tol, maxit, m1, m2, x0)
  % Conjugate gradients; A and the preconditioners are matrices or functions.
  if nargin < 2, print_usage (); end
  if nargin < 3 || isempty (tol), tol = 1e-6; end
  if nargin < 4 || isempty (maxit), maxit = min (20, numel (b)); end
  if nargin < 5, m1 = []; end
  if nargin < 6, m2 = []; end
  if nargin < 7 || isempty (x0), x0 = zeros (size (b)); end
  if isnumeric (a), times = @(v) a * v; elseif ischar (a), times = str2func (a); else, times = a; end
  x = x0;
  r = b - times (x);
  z = divided (m2, divided (m1, r));
  p = z;
  rz = r' * z;
  bound = tol * norm (b);
  resvec = norm (r);
  flag = 1;
  iter = 0;
  best = struct ("x", x, "iter", 0, "residual", resvec);
  if resvec <= bound, flag = 0; elseif ! all (isfinite (z)), flag = 2; end
  while flag == 1 && iter < maxit
    q = times (p);
    if p' * q <= 0 || rz <= 0, flag = 4; break; end
    alpha = rz / (p' * q);
    x += alpha * p;
    r -= alpha * q;
    iter++;
    resvec(end+1,1) = norm (r);
    if resvec(end) <= best.residual, best = struct ("x", x, "iter", iter, "residual", resvec(end)); end
    if resvec(end) <= bound, flag = 0; break; end
    z = divided (m2, divided (m1, r));
    if ! all (isfinite (z)), flag = 2; break; end
    next = r' * z;
    p = z + next / rz * p;
    rz = next;
  end
  last = iter;
  if flag, x = best.x; iter = best.iter; end
  relres = best.residual / norm (b);
  if nargout < 2, tell (b, flag, tol, last, iter, relres); end
end
function tell (b, flag, tol, last, iter, relres)
  if ! any (b)
    printf ("The right hand side vector is all zero so pcg \nreturned an all zero solution without iterating.\n");
  elseif flag == 1
    printf (["pcg stopped at iteration %d without converging to the desired tolerance %g because the maximum number " ...
             "of iteration was reached, \n"], last + 1, tol);
    printf ("The iterated returned (number %d) has relative residual %g \n", iter, relres);
  elseif flag
    why = {"a preconditioner is singular", "it stagnates", "the (preconditioned) matrix is not positive definite"}{flag-1};
    printf ("pcg stopped at iteration %d without converging to the desired tolerance %g because %s. \n", last + 1, tol, why);
    printf ("The iterate returned (number %d) has relative residual %g \n", iter, relres);
  else
    printf ("pcg converged at iteration %d with relative residual %g\n", iter, relres);
  end
end
function z = divided (m, r)
  if isempty (m), z = r; elseif isnumeric (m), z = m \ r; else, z = m (r); end
end

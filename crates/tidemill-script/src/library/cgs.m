function [x, flag, relres, iter, resvec] = cgs (a, b, tol, maxit, m1, m2, x0)
  if nargin < 2, print_usage (); end
  if nargin < 3 || isempty (tol), tol = 1e-6; end
  if nargin < 4 || isempty (maxit), maxit = min (rows (b), 20); end
  if nargin < 5, m1 = []; end
  if nargin < 6, m2 = []; end
  if nargin < 7 || isempty (x0), x0 = zeros (size (b)); end
  if ! iscolumn (b), error ("cgs: b must be a column vector"); end
  if isnumeric (a) && rows (a) != columns (a), error ("cgs: A must be a square matrix"); end
  x = x0;
  size_ = norm (b);
  if size_ == 0, x = zeros (size (b)); flag = 0; relres = 0; iter = 0; resvec = 0; return; end
  r = b - times_matrix (a, x);
  resvec = norm (r);
  flag = 1;
  iter = 0;
  if resvec <= tol * size_, flag = 0; end
  shadow = r;
  rho = 1;
  p = q = zeros (size (b));
  while flag == 1 && iter < maxit
    iter++;
    before = rho;
    rho = shadow' * r;
    if rho == 0, flag = 4; break; end
    if iter == 1, beta_ = 0; else, beta_ = rho / before; end
    u = r + beta_ * q;
    p = u + beta_ * (q + beta_ * p);
    v = times_matrix (a, over_matrix (m1, m2, p));
    alpha = rho / (shadow' * v);
    q = u - alpha * v;
    step = over_matrix (m1, m2, u + q);
    x += alpha * step;
    r -= alpha * times_matrix (a, step);
    resvec(end+1,1) = norm (r);
    if resvec(end) <= tol * size_, flag = 0; end
  end
  relres = resvec(end) / size_;
  if nargout < 2 && flag != 0, warning ("cgs: the tolerance was not reached in %d steps", iter); end
end

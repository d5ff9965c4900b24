function [x, flag, relres, iter, resvec] = bicg (a, b, tol, maxit, m1, m2, x0)
  if nargin < 2, print_usage (); end
  if nargin < 3 || isempty (tol), tol = 1e-6; end
  if nargin < 4 || isempty (maxit), maxit = min (rows (b), 20); end
  if nargin < 5, m1 = []; end
  if nargin < 6, m2 = []; end
  if nargin < 7 || isempty (x0), x0 = zeros (size (b)); end
  if ! iscolumn (b), error ("bicg: b must be a column vector"); end
  if isnumeric (a) && rows (a) != columns (a), error ("bicg: A must be a square matrix"); end
  x = x0;
  size_ = norm (b);
  if size_ == 0, x = zeros (size (b)); flag = 0; relres = 0; iter = 0; resvec = 0; return; end
  r = b - times_matrix (a, x);
  resvec = norm (r);
  flag = 1;
  iter = 0;
  if resvec <= tol * size_, flag = 0; end
  if ! isnumeric (a), error ("bicg: A must be a matrix"); end
  shadow = r;
  rho = 1;
  p = p_ = zeros (size (b));
  while flag == 1 && iter < maxit
    iter++;
    z = over_matrix (m1, m2, r);
    z_ = shadow;
    if ! isempty (m1), z_ = m1' \ z_; end
    if ! isempty (m2), z_ = m2' \ z_; end
    before = rho;
    rho = z' * shadow;
    if rho == 0, flag = 4; break; end
    if iter == 1, beta_ = 0; else, beta_ = rho / before; end
    p = z + beta_ * p;
    p_ = z_ + beta_ * p_;
    q = a * p;
    alpha = rho / (p_' * q);
    x += alpha * p;
    r -= alpha * q;
    shadow -= alpha * (a' * p_);
    resvec(end+1,1) = norm (r);
    if resvec(end) <= tol * size_, flag = 0; end
  end
  relres = resvec(end) / size_;
  if nargout < 2 && flag != 0, warning ("bicg: the tolerance was not reached in %d steps", iter); end
end

function [x, flag, relres, iter, resvec] = bicgstab (a, b, tol, maxit, m1, m2, x0)
  if nargin < 2, print_usage (); end
  if nargin < 3 || isempty (tol), tol = 1e-6; end
  if nargin < 4 || isempty (maxit), maxit = min (rows (b), 20); end
  if nargin < 5, m1 = []; end
  if nargin < 6, m2 = []; end
  if nargin < 7 || isempty (x0), x0 = zeros (size (b)); end
  if ! iscolumn (b), error ("bicgstab: b must be a column vector"); end
  if isnumeric (a) && rows (a) != columns (a), error ("bicgstab: A must be a square matrix"); end
  x = x0;
  size_ = norm (b);
  if size_ == 0, x = zeros (size (b)); flag = 0; relres = 0; iter = 0; resvec = 0; return; end
  r = b - times_matrix (a, x);
  resvec = norm (r);
  flag = 1;
  iter = 0;
  if resvec <= tol * size_, flag = 0; end
  [rho, alpha, omega] = deal (1);
  shadow = r;
  v = p = zeros (size (b));
  while flag == 1 && iter < maxit
    iter++;
    before = rho;
    rho = shadow' * r;
    if rho == 0, flag = 4; break; end
    p = r + rho / before * alpha / omega * (p - omega * v);
    steep = over_matrix (m1, m2, p);
    v = times_matrix (a, steep);
    alpha = rho / (shadow' * v);
    x += alpha * steep;
    r -= alpha * v;
    if norm (r) <= tol * size_, resvec(end+1,1) = norm (r); flag = 0; break; end
    steep = over_matrix (m1, m2, r);
    t = times_matrix (a, steep);
    omega = (t' * r) / (t' * t);
    x += omega * steep;
    r -= omega * t;
    resvec(end+1,1) = norm (r);
    if resvec(end) <= tol * size_, flag = 0; end
    if omega == 0, flag = 4; end
  end
  relres = resvec(end) / size_;
  if nargout < 2 && flag != 0, warning ("bicgstab: the tolerance was not reached in %d steps", iter); end
end

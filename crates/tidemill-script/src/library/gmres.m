function [x, flag, relres, iter, resvec] = gmres (a, b, restart, tol, maxit, m1, m2, x0)
  % Arnoldi's vectors and Givens' rotations, begun anew after RESTART steps.
  if nargin < 2, print_usage (); end
  n = rows (b);
  if nargin < 3, restart = []; end
  if nargin < 4 || isempty (tol), tol = 1e-6; end
  if nargin < 5 || isempty (maxit), maxit = min (n, 10); end
  if nargin < 6, m1 = []; end
  if nargin < 7, m2 = []; end
  if nargin < 8 || isempty (x0), x0 = zeros (size (b)); end
  if ! iscolumn (b), error ("gmres: b must be a column vector"); end
  if isnumeric (a) && rows (a) != columns (a), error ("gmres: A must be a square matrix"); end
  if isempty (restart), inner = maxit; outer = 1; else, inner = min (restart, n); outer = maxit; end
  x = x0;
  size_ = norm (over_matrix (m1, m2, b));
  if size_ == 0, x = zeros (size (b)); flag = 0; relres = 0; iter = [0, 0]; resvec = 0; return; end
  resvec = norm (over_matrix (m1, m2, b - times_matrix (a, x)));
  flag = 1;
  iter = [0, 0];
  for j = 1:outer
    r = over_matrix (m1, m2, b - times_matrix (a, x));
    g = norm (r);
    if g <= tol * size_, flag = 0; break; end
    q = r / g;
    h = zeros (inner + 1, inner);
    turns = zeros (inner, 2);
    for i = 1:inner
      iter = [j, i];
      w = over_matrix (m1, m2, times_matrix (a, q(:,i)));
      for k = 1:i
        h(k,i) = q(:,k)' * w;
        w -= h(k,i) * q(:,k);
      end
      h(i+1,i) = norm (w);
      broken = h(i+1,i) <= eps * norm (h(1:i,i));
      if ! broken, q(:,i+1) = w / h(i+1,i); end
      for k = 1:i-1
        h(k:k+1,i) = [turns(k,1), turns(k,2); -conj(turns(k,2)), turns(k,1)] * h(k:k+1,i);
      end
      length_ = norm (h(i:i+1,i));
      if h(i,i) == 0
        turns(i,:) = [0, 1];
      else
        turns(i,:) = [abs(h(i,i)), h(i,i) / abs(h(i,i)) * conj(h(i+1,i))] / length_;
      end
      h(i:i+1,i) = [turns(i,1), turns(i,2); -conj(turns(i,2)), turns(i,1)] * h(i:i+1,i);
      g(i+1,1) = -conj (turns(i,2)) * g(i);
      g(i) = turns(i,1) * g(i);
      resvec(end+1,1) = abs (g(i+1));
      if resvec(end) <= tol * size_ || broken, break; end
    end
    x += q(:,1:i) * (h(1:i,1:i) \ g(1:i));
    if resvec(end) <= tol * size_, flag = 0; break; end
    if broken, flag = 3; break; end
  end
  relres = resvec(end) / size_;
  if nargout < 2 && flag != 0, warning ("gmres: the tolerance was not reached"); end
end

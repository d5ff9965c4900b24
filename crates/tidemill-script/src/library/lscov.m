function [x, stdx, mse, s] = lscov (a, b, v, alg)
  % Least squares with weights, or with the covariance V of B; with the standard errors of X, their scale and covariance.
  if nargin < 2, print_usage (); end
  if ! (isnumeric (a) && ismatrix (a) && ndims (a) == 2 && isnumeric (b) && ndims (b) == 2)
    error ("lscov: A and B must be numeric matrices");
  end
  if rows (a) != rows (b), error ("lscov: A and B must have the same number of rows"); end
  n = rows (a);
  if nargin > 2 && ! isempty (v)
    if isvector (v)
      if numel (v) != n, error ("lscov: vector V must have n (number of row in A) elements"); end
      w = sqrt (v(:));
    elseif isequal (size (v), [n, n])
      [l, bad] = chol (v);
      % One that is only semidefinite is turned into its axes.
      if bad, [q, d] = eig (v); w = pinv (q * sqrt (max (d, 0))); else, w = inv (l'); end
    else
      error ("lscov: V should be a square matrix or a vector with the same number of rows as A");
    end
    if isvector (v), a = a .* w; b = b .* w; else, a = w * a; b = w * b; end
  end
  p = columns (a);
  [q, r] = qr (a, 0);
  if n >= p && rank (r) == p
    x = r \ (q' * b);
    spread = inv (r) * inv (r)';
  else
    x = pinv (a) * b;
    spread = pinv (a' * a);
  end
  if nargout < 2, return; end
  mse = sumsq (b - a * x, 1) / (n - p);
  stdx = sqrt (diag (spread) * mse);
  s = zeros (p, p, columns (b));
  for k = 1:columns (b), s(:,:,k) = mse(k) * spread; end
end

function [x, deviations, mse, s] = lscov (a, b, v)
  if nargin < 2, print_usage (); end
  given = nargin > 2 && ! isempty (v);
  if given && isvector (v)
    if numel (v) != rows (a), error ("lscov: vector V must have n (number of row in A) elements "); end
    w = sqrt (v(:));
    a = a .* w;
    b = b .* w;
  elseif given
    l = chol (v)';
    a = l \ a;
    b = l \ b;
  end
  x = a \ b;
  if nargout < 2, return; end
  % What is left over, for each right side, and what it says of the solution.
  mse = sumsq (b - a * x) / (rows (a) - columns (a));
  spread = inv (a' * a);
  deviations = sqrt (diag (spread) * mse);
  s = spread .* reshape (mse, 1, 1, []);
end

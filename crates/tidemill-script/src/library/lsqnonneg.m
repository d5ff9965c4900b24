function [x, resnorm, residual, exitflag, output, lambda] = lsqnonneg (c, d, x, options)
  % C. L. Lawson and R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23.
  if nargin < 2, print_usage (); end
  if ! (isnumeric (c) && ismatrix (c) && isnumeric (d) && rows (c) == rows (d))
    error ("lsqnonneg: C and D must be real matrices with as many rows");
  end
  n = columns (c);
  steps_max = 1e5;
  if nargin > 3, steps_max = optimget (options, "MaxIter", steps_max); end
  if nargin < 3 || isempty (x), x = zeros (n, 1); end
  free = x > 0;
  x = zeros (n, 1);
  if any (free), x(free) = max (c(:,free) \ d, 0); end
  free = x > 0;
  tolerance = 10 * eps * norm (c, 1) * (max (size (c)));
  exitflag = 0;
  for step = 1:steps_max
    slope = c' * (d - c * x);
    slope(free) = -Inf;
    [most, k] = max (slope);
    if isempty (most) || most <= tolerance, exitflag = step + 1; break; end
    free(k) = true;
    while true
      z = zeros (n, 1);
      z(free) = c(:,free) \ d;
      low = find (free & z <= 0);
      if isempty (low), x = z; break; end
      % As far towards z as all stay at 0 or above.
      along = min (x(low) ./ (x(low) - z(low)));
      x += along * (z - x);
      free &= x > tolerance;
      x(! free) = 0;
      if ! any (free), break; end
    end
  end
  residual = d - c * x;
  resnorm = residual' * residual;
  output = struct ("algorithm", "nnls", "iterations", exitflag);
  lambda = zeros (n, 1);
  lambda(! free) = c(:,! free)' * residual;
end

function [beta, sigma, r] = ols (y, x)
  if nargin != 2, print_usage (); end
  if ! (isnumeric (x) && isnumeric (y)), error ("ols: X and Y must be numeric matrices or vectors"); end
  if rows (x) != rows (y), error ("ols: number of rows of X and Y must be equal"); end
  beta = pinv (x) * y;
  r = y - x * beta;
  rank_ = rank (x);
  sigma = r' * r / (rows (x) - rank_);
end

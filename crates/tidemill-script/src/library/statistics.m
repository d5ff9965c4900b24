function s = statistics (x, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2, dim = find (size (x) > 1, 1); end
  if isempty (dim), dim = 1; end
  if size (x, dim) < 2, error ("statistics: dimension of X is too small (<2)"); end
  q = quantile (x, [0.25; 0.5; 0.75], dim, 7);
  s = cat (dim, min (x, [], dim), q, max (x, [], dim), mean (x, dim), std (x, [], dim), skewness (x, [], dim), kurtosis (x, [], dim));
end

function [z, mu, sigma] = zscore (x, opt, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (opt), opt = 0; end
  if ! (isnumeric (x) || islogical (x)), error ("zscore: X must be a numeric vector or matrix"); end
  if ! (isscalar (opt) && (opt == 0 || opt == 1)), error ("zscore: normalization OPT must be empty, 0, or 1"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if isempty (x), z = x; return; end
  if ! isfloat (x), x = double (x); end
  mu = mean (x, dim);
  sigma = std (x, opt, dim);
  by = sigma;
  by(by == 0) = 1;
  z = center (x, dim) ./ by;
end

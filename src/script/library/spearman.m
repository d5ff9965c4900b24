function rho = spearman (x, y)
  if nargin < 1, print_usage (); end
  if nargin < 2, y = x; end
  if isrow (x), x = x.'; end
  if isrow (y), y = y.'; end
  rho = corr (ranks (x), ranks (y));
end

function rho = spearman (x, y)
  if nargin < 1, print_usage (); end
  if nargin < 2, y = x; end
  is_data = @(v) isnumeric (v) || islogical (v);
  if ! (is_data (x) && is_data (y)), error ("spearman: X and Y must be numeric matrices or vectors"); end
  if ndims (x) != 2 || ndims (y) != 2, error ("spearman: X and Y must be 2-D matrices or vectors"); end
  if isrow (x), x = x.'; end
  if isrow (y), y = y.'; end
  rho = corr (ranks (x), ranks (y));
  if isa (x, "single") || isa (y, "single"), rho = single (rho); end
end

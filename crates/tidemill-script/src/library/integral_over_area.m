function [q, err] = integral_over_area (who, fcn, xa, xb, ya, yb, options)
  [tolerances, vectorized] = area_options (who, xa, xb, options, 1e-8);
  ya = area_limit (who, "YA", ya);
  yb = area_limit (who, "YB", yb);
  if ischar (fcn), fcn = str2func (fcn); end
  if ! vectorized, fcn = @(x, y) arrayfun (fcn, x, y); end
  inner = @(x) quadgk (@(y) fcn (x * ones (size (y)), y), ya (x), yb (x), tolerances{:});
  [q, err] = quadgk (@(x) arrayfun (inner, x), xa, xb, tolerances{:});
end

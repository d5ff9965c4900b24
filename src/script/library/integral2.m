function q = integral2 (fcn, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  if ! is_function_handle (ya), ya = @(x) ya; end
  if ! is_function_handle (yb), yb = @(x) yb; end
  inner = @(x) quadgk (@(y) fcn (x * ones (size (y)), y), ya (x), yb (x), "AbsTol", 1e-10, "RelTol", 1e-8);
  q = quadgk (@(x) arrayfun (inner, x), xa, xb, "AbsTol", 1e-10, "RelTol", 1e-8);
end

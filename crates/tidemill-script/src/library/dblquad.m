function q = dblquad (fcn, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  if ischar (fcn), fcn = str2func (fcn); end
  inner = @(y) quadgk (@(x) fcn (x, y), xa, xb, "AbsTol", 1e-10, "RelTol", 1e-8);
  q = quadgk (@(y) arrayfun (inner, y), ya, yb, "AbsTol", 1e-10, "RelTol", 1e-8);
end

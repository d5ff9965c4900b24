function [q, ier, nfev, err] = quad (fcn, a, b, tol)
  if nargin < 3, print_usage (); end
  if ischar (fcn), fcn = str2func (fcn); end
  [q, err] = quadgk (@(x) arrayfun (fcn, x), a, b, "AbsTol", 1e-10, "RelTol", 1e-10);
  ier = 0;
  nfev = 0;
end

function [q, ier, nfev, err] = quad (fcn, a, b, tol)
  if nargin < 3, print_usage (); end
  if ischar (fcn), fcn = str2func (fcn); end
  [q, err, nfev] = quadgk (@(x) arrayfun (fcn, x), double (a), double (b), "AbsTol", 1e-10, "RelTol", 1e-10);
  ier = 0;
  if isa (a, "single") || isa (b, "single"), q = single (q); err = single (err); else, q = double (q); end
end

function [q, err, points] = quadcc (f, a, b, tol, singular)
  if nargin < 3, print_usage (); end
  if ischar (f), f = str2func (f); end
  [q, err, points] = quadgk (f, double (a), double (b), "AbsTol", 1e-12, "RelTol", 1e-10);
  if isa (a, "single") || isa (b, "single"), [q, err] = deal (single (q), single (err)); else, q = double (q); end
end

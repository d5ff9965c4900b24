function [q, err, points] = quadcc (f, a, b, tol, singular)
  if nargin < 3, print_usage (); end
  if ischar (f), f = str2func (f); end
  [q, err] = quadgk (f, a, b, "AbsTol", 1e-12, "RelTol", 1e-10);
  points = 0;
end

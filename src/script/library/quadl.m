function q = quadl (fcn, a, b, varargin)
  if nargin < 3, print_usage (); end
  q = quadgk (fcn, a, b, "AbsTol", 1e-12, "RelTol", 1e-10);
end

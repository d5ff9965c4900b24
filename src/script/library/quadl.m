function q = quadl (fcn, a, b, varargin)
  if nargin < 3, print_usage (); end
  if nargin > 3 && ! isempty (varargin{1}) && ! (isscalar (varargin{1}) && varargin{1} >= 0), error ("quadl: TOL must be a scalar >=0"); end
  q = quadgk (fcn, a, b, "AbsTol", 1e-12, "RelTol", 1e-10);
end

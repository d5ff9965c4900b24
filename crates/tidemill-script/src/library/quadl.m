function [q, nfev] = quadl (fcn, a, b, varargin)
  if nargin < 3, print_usage (); end
  if nargin > 3 && ! isempty (varargin{1}) && ! (isscalar (varargin{1}) && varargin{1} >= 0), error ("quadl: TOL must be a scalar >=0"); end
  if numel (varargin) > 2
    % Behind the tolerance and the trace stand further arguments of the function.
    more_ = varargin(3:end);
    fcn = @(x) feval (fcn, x, more_{:});
  end
  [q, ~, nfev] = quadgk (fcn, double (a), double (b), "AbsTol", 1e-12, "RelTol", 1e-10);
  if isa (a, "single") || isa (b, "single"), q = single (q); else, q = double (q); end
end

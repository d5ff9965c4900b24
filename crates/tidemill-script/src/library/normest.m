function [estimate, steps] = normest (a, tolerance)
  % The power iteration on a' * a.
  if nargin < 1, print_usage (); end
  if nargin < 2, tolerance = 1e-6; end
  if ! (isnumeric (tolerance) && isscalar (tolerance) && isreal (tolerance)), error ("normest: TOL must be a real scalar"); end
  if ! (isnumeric (a) && ndims (a) == 2), error ("normest: A must be a numeric 2-D matrix"); end
  if ! isfloat (a), a = double (a); end
  tolerance = max (tolerance, eps (underlyingType (a)));
  % Not as symmetric as the matrix may be, whose first vector would stand at right angles to it.
  x = sum (abs (a), 1)' .* (1 + (1:columns (a))' / (8 * max (columns (a), 1)));
  estimate = norm (x);
  steps = 0;
  if isempty (a) || estimate == 0, estimate = 0; return; end
  x /= estimate;
  before = 0;
  while abs (estimate - before) > tolerance * estimate
    before = estimate;
    ax = a * x;
    if ! any (ax), ax = rand (size (ax)); end
    x = a' * ax;
    length = norm (x);
    estimate = length / norm (ax);
    x /= length;
    steps++;
    if steps > 100, warning ("normest: no convergence in 100 steps"); break; end
  end
end

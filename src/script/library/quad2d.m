function q = quad2d (f, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  q = integral2 (f, xa, xb, ya, yb, varargin{:});
end

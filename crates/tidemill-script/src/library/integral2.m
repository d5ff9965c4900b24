function q = integral2 (fcn, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  q = integral_over_area ("integral2", fcn, xa, xb, ya, yb, varargin);
end

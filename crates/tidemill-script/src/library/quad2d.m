function [q, err] = quad2d (f, xa, xb, ya, yb, varargin)
  if nargin < 5, print_usage (); end
  [q, err] = integral_over_area ("quad2d", f, xa, xb, ya, yb, varargin);
end

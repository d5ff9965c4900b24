function [g, y] = planerot (x)
  if nargin != 1, print_usage (); end
  g = givens (x(1), x(2));
  y = g * x(:);
end

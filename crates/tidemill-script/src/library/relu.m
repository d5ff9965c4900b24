function y = relu (x)
  if nargin < 1, print_usage (); end
  y = max (x, 0);
end

function y = filter2 (b, x, shape)
  if nargin < 2, print_usage (); end
  if nargin < 3, shape = "same"; end
  y = conv2 (x, rot90 (b, 2), shape);
end

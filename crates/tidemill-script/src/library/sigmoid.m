function y = sigmoid (x)
  if nargin < 1, print_usage (); end
  y = 1 ./ (1 + exp (-x));
end

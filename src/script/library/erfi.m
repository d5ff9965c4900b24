function y = erfi (x)
  if nargin != 1, print_usage (); end
  y = 2 / sqrt (pi) * exp (x .^ 2) .* dawson (x);
  y(isinf (x)) = x(isinf (x));
end

function y = sinc (x)
  if nargin != 1, print_usage (); end
  y = ones (size (x));
  other = x != 0;
  t = pi * x(other);
  y(other) = sin (t) ./ t;
end

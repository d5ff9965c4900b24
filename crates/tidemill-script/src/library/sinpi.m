function y = sinpi (x)
  if nargin != 1, print_usage (); end
  x = rem (x, 2);
  y = sin (x * pi);
  y(x == fix (x)) = 0;
end

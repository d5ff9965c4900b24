function y = cospi (x)
  if nargin != 1, print_usage (); end
  x = rem (x, 2);
  y = cos (x * pi);
  y(abs (rem (x, 1)) == 0.5) = 0;
end

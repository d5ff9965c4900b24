function d = atan2d (y, x)
  if nargin != 2, print_usage (); end
  d = atan2 (y, x) * (180 / pi);
end

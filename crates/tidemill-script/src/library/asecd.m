function y = asecd (x)
  if nargin < 1, print_usage (); end
  y = asec (x) * (180 / pi);
end

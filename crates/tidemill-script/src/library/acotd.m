function d = acotd (x)
  if nargin != 1, print_usage (); end
  d = atand (1 ./ x);
end

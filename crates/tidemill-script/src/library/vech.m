function v = vech (x)
  if nargin != 1, print_usage (); end
  v = x(tril (true (size (x))));
end

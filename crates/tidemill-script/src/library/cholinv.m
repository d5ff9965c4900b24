function b = cholinv (a)
  if nargin != 1, print_usage (); end
  b = chol2inv (chol (a));
end

function yes = issparse (x)
  if nargin != 1, print_usage (); end
  yes = false;
end

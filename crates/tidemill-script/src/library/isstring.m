function answer = isstring (x)
  if nargin != 1, print_usage (); end
  answer = false;
end

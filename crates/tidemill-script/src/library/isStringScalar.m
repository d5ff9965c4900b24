function answer = isStringScalar (x)
  if nargin != 1, print_usage (); end
  answer = false;
end

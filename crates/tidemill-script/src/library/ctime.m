function text = ctime (t)
  if nargin != 1, print_usage (); end
  text = asctime (localtime (t));
end

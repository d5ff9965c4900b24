function text = asctime (tm)
  if nargin != 1, print_usage (); end
  text = strftime ("%a %b %d %H:%M:%S %Y\n", tm);
end

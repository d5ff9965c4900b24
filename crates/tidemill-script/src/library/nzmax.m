function n = nzmax (x)
  if nargin != 1, print_usage (); end
  n = numel (x);
end

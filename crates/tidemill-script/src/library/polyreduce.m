function p = polyreduce (p)
  if nargin != 1, print_usage (); end
  if ! isvector (p), error ("polyreduce: C must be a non-empty vector"); end
  first = find (p != 0, 1);
  if isempty (first), p = 0; else, p = p(first:end); end
end

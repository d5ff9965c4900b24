function y = center (x, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if isinteger (x) || islogical (x), x = double (x); end
  if isempty (x), y = x; else, y = x - mean (x, dim); end
end

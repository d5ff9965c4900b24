function y = center (x, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if isinteger (x) || islogical (x), x = double (x); end
  if isempty (x), y = x; return; end
  y = x - mean (x, dim);
  if ! strcmp (underlyingType (x), "single"), return; end
  % A single mean of large numbers is rounded: what is left of it goes, too.
  rest = mean (y, dim);
  rest(! isfinite (rest)) = 0;
  y = y - rest;
end

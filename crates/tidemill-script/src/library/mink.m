function [y, at] = mink (x, k, dim)
  if nargin < 2, print_usage (); end
  if ! (isscalar (k) && k >= 0 && k == fix (k)), error ("mink: K must be a non-negative integer"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  [y, at] = sort (x, dim, "ascend");
  part = repmat ({":"}, 1, ndims (x));
  part{dim} = 1:min (k, size (x, dim));
  y = y(part{:});
  at = at(part{:});
end

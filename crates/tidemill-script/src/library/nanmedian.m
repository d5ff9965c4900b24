function y = nanmedian (x, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  % NaN is sorted behind the numbers of its column.
  order = [dim, 1:dim-1, dim+1:ndims(x)];
  shape = size (x);
  x = sort (reshape (permute (x, order), size (x, dim), []), 1);
  n = sum (! isnan (x), 1);
  y = NaN (1, columns (x), underlyingType (x));
  some = find (n > 0);
  at = (some - 1) * rows (x);
  y(some) = (x(at + floor ((n(some) + 1) / 2)) + x(at + floor (n(some) / 2) + 1)) / 2;
  shape(dim) = 1;
  y = ipermute (reshape (y, shape(order)), order);
end

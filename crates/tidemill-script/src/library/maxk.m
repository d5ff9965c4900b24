function [y, at] = maxk (x, k, dim)
  if nargin < 2, print_usage (); end
  if ! (isscalar (k) && k >= 0 && k == fix (k)), error ("maxk: K must be a non-negative integer"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  [y, at] = sort (x, dim, "descend");
  if isreal (x) && any (isnan (x(:)))
    % NaN is the last that is taken.
    low = x;
    low(isnan (x)) = -Inf;
    [~, at] = sort (low, dim, "descend");
    y = x(place (size (x), at, dim));
  end
  part = repmat ({":"}, 1, ndims (x));
  part{dim} = 1:min (k, size (x, dim));
  y = y(part{:});
  at = at(part{:});
end
function at = place (dims, at, dim)
  % Linear subscripts of the elements AT along DIM.
  step = prod (dims(1:dim-1));
  shape = dims;
  shape(dim) = 1;
  first = reshape (1:prod (dims), dims);
  part = repmat ({":"}, 1, numel (dims));
  part{dim} = 1;
  at = first(part{:}) + (at - 1) * step;
end

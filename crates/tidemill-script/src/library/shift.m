function y = shift (x, b, dim)
  if nargin < 2, print_usage (); end
  if isempty (x), error ("shift: X must not be empty"); end
  if ! (isscalar (b) && b == fix (b)), error ("shift: B must be an integer"); end
  if nargin < 3, dim = find (size (x) > 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isscalar (dim) && dim == fix (dim) && dim > 0 && dim <= ndims (x))
    error ("shift: DIM must be an integer and a valid dimension");
  end
  y = circshift (x, b, dim);
end

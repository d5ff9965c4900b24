function a = polyarea (x, y, dim)
  if nargin < 2, print_usage (); end
  if ! size_equal (x, y), error ("polyarea: X and Y must have the same shape"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  a = abs (sum (x .* circshift (y, -1, dim) - circshift (x, -1, dim) .* y, dim)) / 2;
end

function [theta, r, z] = cart2pol (x, y, z)
  if nargin < 1, print_usage (); end
  together = nargin == 1;
  if together
    if ! isnumeric (x) || ndims (x) != 2, error ("cart2pol: matrix input must be 2-D numeric array"); end
    if isvector (x) && any (numel (x) == [2, 3]), x = x(:).'; end
    if ! any (columns (x) == [2, 3]), error ("cart2pol: matrix input must be a 2- or 3-element vector or a 2- or 3-column array"); end
    c = x; x = c(:,1); y = c(:,2);
  end
  if nargin == 3
    if ! (isnumeric (x) && isnumeric (y) && isnumeric (z)), error ("cart2pol: X, Y, Z must be numeric arrays or scalars"); end
    [differ, x, y, z] = common_size (x, y, z);
    if differ, error ("cart2pol: X, Y, Z must be the same size or scalars"); end
  elseif nargin == 2
    if ! (isnumeric (x) && isnumeric (y)), error ("cart2pol: X, Y must be numeric arrays or scalars"); end
    [differ, x, y] = common_size (x, y);
    if differ, error ("cart2pol: X, Y must be the same size or scalars"); end
  end
  theta = atan2 (y, x);
  r = sqrt (x .^ 2 + y .^ 2);
  if together && columns (c) == 3
    z = c(:,3);
  end
end

function [x, y, z] = pol2cart (theta, r, z)
  if nargin < 1, print_usage (); end
  together = nargin == 1;
  if together
    if ! isnumeric (theta) || ndims (theta) != 2, error ("cart2pol: matrix input P must be 2-D numeric array"); end
    if isvector (theta) && any (numel (theta) == [2, 3]), theta = theta(:).'; end
    if ! any (columns (theta) == [2, 3]), error ("cart2pol: matrix input must be a 2- or 3-element vector or a 2- or 3-column array"); end
    c = theta; theta = c(:,1); r = c(:,2);
    if columns (c) == 3, z = c(:,3); end
  end
  if nargin == 3
    if ! (isnumeric (theta) && isnumeric (r) && isnumeric (z)), error ("pol2cart: THETA, R, Z must be numeric arrays or scalars"); end
    [differ, theta, r, z] = common_size (theta, r, z);
    if differ, error ("pol2cart: THETA, R, Z must be the same size or scalars"); end
  elseif nargin == 2
    if ! (isnumeric (theta) && isnumeric (r)), error ("pol2cart: THETA, R must be numeric arrays or scalars"); end
    [differ, theta, r] = common_size (theta, r);
    if differ, error ("pol2cart: THETA, R must be the same size or scalars"); end
  end
  x = r .* cos (theta);
  y = r .* sin (theta);
end

function [theta, phi, r] = cart2sph (x, y, z)
  if nargin == 1
    c = x;
    if ! isnumeric (c) || ndims (c) != 2, error ("cart2sph: matrix input C must be a 2-D numeric array"); end
    if isvector (c) && numel (c) == 3, c = c(:).'; end
    if columns (c) != 3, error ("cart2sph: matrix input C must be a 3-element vector or 3-column array"); end
    x = c(:,1); y = c(:,2); z = c(:,3);
  elseif nargin != 3
    print_usage ();
  end
  if ! (isnumeric (x) && isnumeric (y) && isnumeric (z)), error ("cart2sph: X, Y, Z must be numeric arrays or scalars"); end
  [differ, x, y, z] = common_size (x, y, z);
  if differ, error ("cart2sph: X, Y, Z must be the same size or scalars"); end
  theta = atan2 (y, x);
  phi = atan2 (z, sqrt (x .^ 2 + y .^ 2));
  r = sqrt (x .^ 2 + y .^ 2 + z .^ 2);
end

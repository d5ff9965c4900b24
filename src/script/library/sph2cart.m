function [x, y, z] = sph2cart (theta, phi, r)
  if nargin == 1
    c = theta;
    if ! isnumeric (c) || ndims (c) != 2, error ("sph2cart: matrix input must be a 2-D numeric array"); end
    if isvector (c) && numel (c) == 3, c = c(:).'; end
    if columns (c) != 3, error ("sph2cart: matrix input must be a 3-element vector or 3-column array"); end
    theta = c(:,1); phi = c(:,2); r = c(:,3);
  elseif nargin != 3
    print_usage ();
  end
  if ! (isnumeric (theta) && isnumeric (phi) && isnumeric (r)), error ("sph2cart: THETA, PHI, R must be numeric arrays or scalars"); end
  [differ, theta, phi, r] = common_size (theta, phi, r);
  if differ, error ("sph2cart: THETA, PHI, R must be the same size or scalars"); end
  x = r .* cos (phi) .* cos (theta);
  y = r .* cos (phi) .* sin (theta);
  z = r .* sin (phi);
end

function [x, y, z] = sph2cart (theta, phi, r)
  if nargin == 1, c = theta; theta = c(:,1); phi = c(:,2); r = c(:,3); elseif nargin != 3, print_usage (); end
  [differ, theta, phi, r] = common_size (theta, phi, r);
  if differ, error ("sph2cart: THETA, PHI, R must be the same size or scalars"); end
  x = r .* cos (phi) .* cos (theta);
  y = r .* cos (phi) .* sin (theta);
  z = r .* sin (phi);
end

function [theta, phi, r] = cart2sph (x, y, z)
  if nargin == 1, c = x; x = c(:,1); y = c(:,2); z = c(:,3); elseif nargin != 3, print_usage (); end
  [differ, x, y, z] = common_size (x, y, z);
  if differ, error ("cart2sph: X, Y, Z must be the same size or scalars"); end
  theta = atan2 (y, x);
  phi = atan2 (z, sqrt (x .^ 2 + y .^ 2));
  r = sqrt (x .^ 2 + y .^ 2 + z .^ 2);
end

function [x, y, z] = pol2cart (theta, r, z)
  if nargin < 1, print_usage (); end
  together = nargin == 1;
  if together
    c = theta; theta = c(:,1); r = c(:,2);
    if columns (c) == 3, z = c(:,3); end
  end
  if nargin == 3
    [differ, theta, r, z] = common_size (theta, r, z);
    if differ, error ("pol2cart: THETA, R, Z must be the same size or scalars"); end
  elseif nargin == 2
    [differ, theta, r] = common_size (theta, r);
    if differ, error ("pol2cart: THETA, R must be the same size or scalars"); end
  end
  x = r .* cos (theta);
  y = r .* sin (theta);
end

function [theta, r, z] = cart2pol (x, y, z)
  if nargin < 1, print_usage (); end
  together = nargin == 1;
  if together
    c = x; x = c(:,1); y = c(:,2);
  end
  if nargin == 3
    [differ, x, y, z] = common_size (x, y, z);
    if differ, error ("cart2pol: X, Y, Z must be the same size or scalars"); end
  elseif nargin == 2
    [differ, x, y] = common_size (x, y);
    if differ, error ("cart2pol: X, Y must be the same size or scalars"); end
  end
  theta = atan2 (y, x);
  r = sqrt (x .^ 2 + y .^ 2);
  if together && columns (c) == 3
    z = c(:,3);
  end
end

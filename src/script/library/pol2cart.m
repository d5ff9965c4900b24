function [x, y, z] = pol2cart (theta, r, z)
  if nargin < 1, print_usage (); end
  together = nargin == 1;
  if together
    c = theta; theta = c(:,1); r = c(:,2);
    if columns (c) == 3, z = c(:,3); end
  end
  x = r .* cos (theta);
  y = r .* sin (theta);
end

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
    [theta, r, z] = same_size_numbers ("pol2cart", "THETA, R, Z", theta, r, z);
  elseif nargin == 2
    [theta, r] = same_size_numbers ("pol2cart", "THETA, R", theta, r);
  end
  x = r .* cos (theta);
  y = r .* sin (theta);
end

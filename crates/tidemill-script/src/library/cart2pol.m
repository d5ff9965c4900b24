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
    [x, y, z] = same_size_numbers ("cart2pol", "X, Y, Z", x, y, z);
  elseif nargin == 2
    [x, y] = same_size_numbers ("cart2pol", "X, Y", x, y);
  end
  theta = atan2 (y, x);
  r = sqrt (x .^ 2 + y .^ 2);
  if together && columns (c) == 3
    z = c(:,3);
  end
end

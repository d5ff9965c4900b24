function [theta, phi, r] = cart2sph (x, y, z)
  if nargin == 1
    [x, y, z] = three_columns ("cart2sph", "matrix input C", x);
  elseif nargin != 3
    print_usage ();
  end
  [x, y, z] = same_size_numbers ("cart2sph", "X, Y, Z", x, y, z);
  theta = atan2 (y, x);
  phi = atan2 (z, sqrt (x .^ 2 + y .^ 2));
  r = sqrt (x .^ 2 + y .^ 2 + z .^ 2);
end

function [x, y, z] = sph2cart (theta, phi, r)
  if nargin == 1
    [theta, phi, r] = three_columns ("sph2cart", "matrix input", theta);
  elseif nargin != 3
    print_usage ();
  end
  [theta, phi, r] = same_size_numbers ("sph2cart", "THETA, PHI, R", theta, phi, r);
  x = r .* cos (phi) .* cos (theta);
  y = r .* cos (phi) .* sin (theta);
  z = r .* sin (phi);
end

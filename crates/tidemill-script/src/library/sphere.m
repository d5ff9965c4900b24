function [x, y, z] = sphere (varargin)
  if nargin > 2, print_usage (); end
  n = 20;
  if nargin > 0, n = varargin{end}; end
  [theta, phi] = meshgrid (linspace (0, 2 * pi, n + 1), linspace (-pi / 2, pi / 2, n + 1));
  [x, y, z] = deal (cos (phi) .* cos (theta), cos (phi) .* sin (theta), sin (phi));
  if nargout == 0, surf (x, y, z); clear x y z; end
end

function [x, y, z] = peaks (x, y)
  if nargin < 1, x = linspace (-3, 3, 49); y = x; elseif nargin < 2, if isscalar (x), x = linspace (-3, 3, x); end, y = x; end
  if isvector (x) && isvector (y), [x, y] = meshgrid (x, y); end
  z = 3 * (1 - x) .^ 2 .* exp (-x .^ 2 - (y + 1) .^ 2) - 10 * (x / 5 - x .^ 3 - y .^ 5) .* exp (-x .^ 2 - y .^ 2) ...
      - 1 / 3 * exp (-(x + 1) .^ 2 - y .^ 2);
  if nargout == 0
    surf (x, y, z);
    clear x y z
  elseif nargout == 1
    x = z;
  end
end

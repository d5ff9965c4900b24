function [x, y, z] = cylinder (r, n)
  if nargin < 1 || isempty (r), r = [1, 1]; end
  if nargin < 2, n = 20; end
  if numel (r) < 2, error ("cylinder: length (R) must be larger than 2"); end
  turn = linspace (0, 2 * pi, n + 1);
  x = r(:) * cos (turn);
  y = r(:) * sin (turn);
  z = repmat (linspace (0, 1, numel (r))(:), 1, n + 1);
  if nargout == 0, surf (x, y, z); clear x y z; end
end

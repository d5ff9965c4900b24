function map = copper (varargin)
  [n, x] = colour_steps ("copper", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [min(1, 1.25 * x), 0.7812 * x, 0.4975 * x];
end

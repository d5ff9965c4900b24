function map = cool (varargin)
  [n, x] = colour_steps ("cool", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [x, 1 - x, ones(n, 1)];
end

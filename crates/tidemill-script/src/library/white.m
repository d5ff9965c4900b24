function map = white (varargin)
  [n, x] = colour_steps ("white", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = ones (n, 3);
end

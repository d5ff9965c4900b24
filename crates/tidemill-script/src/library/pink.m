function map = pink (varargin)
  [n, x] = colour_steps ("pink", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = sqrt ((2 * gray (n) + hot (n)) / 3);
end

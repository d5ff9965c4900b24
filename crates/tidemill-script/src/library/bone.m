function map = bone (varargin)
  [n, x] = colour_steps ("bone", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = (7 * gray (n) + fliplr (hot (n))) / 8;
end

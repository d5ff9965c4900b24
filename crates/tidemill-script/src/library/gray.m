function map = gray (varargin)
  [n, x] = colour_steps ("gray", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [x, x, x];
end

function map = summer (varargin)
  [n, x] = colour_steps ("summer", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [x, 0.5 + x / 2, repmat(0.4, n, 1)];
end

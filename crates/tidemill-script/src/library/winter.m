function map = winter (varargin)
  [n, x] = colour_steps ("winter", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [zeros(n, 1), x, 1 - x / 2];
end

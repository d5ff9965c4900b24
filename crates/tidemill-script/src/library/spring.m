function map = spring (varargin)
  [n, x] = colour_steps ("spring", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [ones(n, 1), x, 1 - x];
end

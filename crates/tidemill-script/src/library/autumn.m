function map = autumn (varargin)
  [n, x] = colour_steps ("autumn", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = [ones(n, 1), x, zeros(n, 1)];
end

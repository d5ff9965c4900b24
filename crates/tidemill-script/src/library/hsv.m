function map = hsv (varargin)
  [n, x] = colour_steps ("hsv", varargin);
  if n == 0, map = zeros (0, 3); return; end
  map = hsv2rgb ([(0:n-1)' / n, ones(n, 2)]);
end

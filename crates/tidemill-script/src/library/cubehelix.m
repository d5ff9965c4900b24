function map = cubehelix (n, start, turns, hue, gamma)
  % D. A. Green's spiral through the cube of colours, whose brightness rises evenly.
  if nargin > 5, print_usage (); end
  if nargin < 1, n = 64; end
  if nargin < 2, start = 0.5; end
  if nargin < 3, turns = -1.5; end
  if nargin < 4, hue = 1; end
  if nargin < 5, gamma = 1; end
  [n, x] = colour_steps ("cubehelix", {n});
  if n == 0, map = zeros (0, 3); return; end
  angle = 2 * pi * (start / 3 + 1 + turns * x);
  x = x .^ gamma;
  amplitude = hue * x .* (1 - x) / 2;
  map = x + amplitude .* ([cos(angle), sin(angle)] * [-0.14861, -0.29227, 1.97294; 1.78277, -0.90649, 0]);
  map = min (max (map, 0), 1);
end

function map = rainbow (varargin)
  [n, x] = colour_steps ("rainbow", varargin);
  if n == 0, map = zeros (0, 3); return; end
  first = x < 2/5;
  second = x >= 2/5 & x < 3/5;
  third = x >= 3/5 & x < 4/5;
  fourth = x >= 4/5;
  red = first + second .* (3 - 5 * x) + fourth .* (10/3 * x - 8/3);
  green = first .* (5/2 * x) + second + third .* (4 - 5 * x);
  blue = third .* (5 * x - 3) + fourth;
  map = [red, green, blue];
end

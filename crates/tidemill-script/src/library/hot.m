function map = hot (varargin)
  [n, x] = colour_steps ("hot", varargin);
  if n == 0, map = zeros (0, 3); return; end
  part = floor (n * 3 / 8);
  rise = (1:part)' / part;
  red = [rise; ones(n - part, 1)];
  green = [zeros(part, 1); rise; ones(n - 2 * part, 1)];
  blue = [zeros(2 * part, 1); (1:n - 2 * part)' / (n - 2 * part)];
  map = [red, green, blue];
end

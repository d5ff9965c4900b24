function map = flag (varargin)
  n = colour_steps ("flag", varargin);
  if n == 0, map = zeros (0, 3); return; end
  colours = [1 0 0; 1 1 1; 0 0 1; 0 0 0];
  map = colours(mod (0:n-1, rows (colours)) + 1,:);
end

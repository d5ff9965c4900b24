function map = prism (varargin)
  n = colour_steps ("prism", varargin);
  if n == 0, map = zeros (0, 3); return; end
  colours = [1 0 0; 1 1/2 0; 1 1 0; 0 1 0; 0 0 1; 2/3 0 1];
  map = colours(mod (0:n-1, rows (colours)) + 1,:);
end

function map = lines (varargin)
  n = colour_steps ("lines", varargin);
  if n == 0, map = zeros (0, 3); return; end
  colours = [0 0.447 0.741; 0.85 0.325 0.098; 0.929 0.694 0.125; 0.494 0.184 0.556; 0.466 0.674 0.188; 0.301 0.745 0.933; 0.635 0.078 0.184];
  map = colours(mod (0:n-1, rows (colours)) + 1,:);
end

function map = parula (varargin)
  % Between colours that are near those of MATLAB's map.
  [n, x] = colour_steps ("parula", varargin);
  if n == 0, map = zeros (0, 3); return; end
  known = [0.242 0.150 0.660; 0.281 0.323 0.958; 0.178 0.529 0.968; 0.069 0.695 0.872; 0.216 0.784 0.592; 0.672 0.779 0.223; 0.997 0.766 0.220; 0.977 0.984 0.081];
  map = interp1 (linspace (0, 1, rows (known)), known, x);
  if n == 1, map = known(1,:); end
end

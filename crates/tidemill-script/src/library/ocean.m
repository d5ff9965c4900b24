function map = ocean (varargin)
  [n, x] = colour_steps ("ocean", varargin);
  if n == 0, map = zeros (0, 3); return; end
  third = max (floor (n / 3), 1);
  if n == 1, map = [0, 0, 0]; return; end
  map = [part(1, n, third), part(2, n, third), (0:n-1)'] / max (n - 1, 1);
end
function column = part (k, n, third)
  % From 0 to n - 1 in the last k thirds.
  column = (0:(n - 1) / (k * third):n - 1)';
  column = [zeros(n - numel (column), 1); column(max (1, end - n + 1):end)];
end

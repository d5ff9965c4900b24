function h = convhull (x, y)
  % A. M. Andrew's way: the lower side, then the upper one, of points in order.
  if nargin < 1, print_usage (); end
  if nargin < 2
    if columns (x) != 2, error ("convhull: X must have two columns"); end
    y = x(:,2); x = x(:,1);
  end
  x = x(:); y = y(:);
  if numel (x) != numel (y), error ("convhull: X and Y must have the same length"); end
  [~, order] = sortrows ([x, y]);
  if numel (order) < 3, error ("convhull: at least three points are needed"); end
  lower = side (x, y, order);
  upper = side (x, y, order(end:-1:1));
  h = [lower(1:end-1); upper];
  if numel (h) < 4, error ("convhull: the points lie on a line"); end
end
function h = side (x, y, order)
  h = zeros (0, 1);
  for k = order.'
    while numel (h) > 1 && (x(h(end)) - x(h(end-1))) * (y(k) - y(h(end-1))) <= (y(h(end)) - y(h(end-1))) * (x(k) - x(h(end-1)))
      h(end) = [];
    end
    h(end+1,1) = k;
  end
end

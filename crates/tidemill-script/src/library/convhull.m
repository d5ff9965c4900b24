function h = convhull (x, y)
  % A. M. Andrew's way: the lower side, then the upper one, of points in order.
  if nargin < 1, print_usage (); end
  if nargin < 2
    if columns (x) != 2, error ("convhull: X must have two columns"); end
    y = x(:,2); x = x(:,1);
  end
  x = x(:); y = y(:);
  if numel (x) != numel (y), error ("convhull: X and Y must have the same length"); end
  outer = outermost (x, y);
  [~, order] = sortrows ([x(outer), y(outer)]);
  order = outer(order);
  if numel (order) < 3, error ("convhull: at least three points are needed"); end
  lower = side (x, y, order);
  upper = side (x, y, order(end:-1:1));
  h = [lower(1:end-1); upper];
  if numel (h) < 4, error ("convhull: the points lie on a line"); end
end
function outer = outermost (x, y)
  % The points that do not lie well within the polygon of those that are farthest in eight directions.
  outer = (1:numel (x))';
  if numel (x) < 100, return; end
  [~, far] = cellfun (@max, {x, x + y, y, y - x, -x, -x - y, -y, x - y});
  inside = true (size (x));
  margin = 1e-10 * (max (abs (x)) + max (abs (y))) ^ 2;
  next = far([2:end, 1]);
  for k = find (far != next)
    [a, b] = deal (far(k), next(k));
    inside &= (x(b) - x(a)) * (y - y(a)) - (y(b) - y(a)) * (x - x(a)) > margin;
  end
  outer = find (! inside);
end
function h = side (x, y, order)
  h = zeros (numel (order), 1);
  n = 0;
  for k = order.'
    [xk, yk] = deal (x(k), y(k));
    while n > 1
      [a, b] = deal (h(n-1), h(n));
      if (x(b) - x(a)) * (yk - y(a)) > (y(b) - y(a)) * (xk - x(a)), break; end
      n--;
    end
    n++;
    h(n) = k;
  end
  h = h(1:n);
end

function [m, n] = mpoles (p, tol, reorder)
  if nargin < 2 || isempty (tol), tol = 0.001; end
  p = p(:);
  if nargin < 3 || isempty (reorder), reorder = true; end
  if reorder, [~, left] = sort (-abs (p)); else, left = (1:numel (p))'; end
  m = zeros (0, 1);
  n = zeros (0, 1);
  while ! isempty (left)
    q = p(left(1));
    same = abs (p(left) - q) <= tol * max (abs (q), (q == 0));
    same(1) = true;
    list = left(same);
    n = [n; list];
    m = [m; (1:numel (list))'];
    left = left(! same);
  end
end

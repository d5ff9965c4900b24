function y = spline (x, y, xi)
  % Cubic, twice continuously differentiable; not-a-knot ends, or given slopes if Y has two more elements than X.
  if nargin < 2, print_usage (); end
  n = numel (x);
  outer = 1;
  if isvector (y)
    a = y(:);
  else
    % A curve for each row, whose pieces stand together.
    outer = size (y)(1:end-1);
    a = reshape (y, prod (outer), []).';
  end
  if n < 2, error ("spline: requires at least 2 points"); end
  if rows (a) == n && any (isnan (a(:))), a = filled (x, a); end
  y = through (x, a, outer);
  if nargin > 2, y = ppval (y, xi); end
end
% The pieces through the columns of `a`, which may begin and end with slopes.
function pp = through (x, a, outer)
  n = numel (x);
  [x, order] = sort (gather (x)(:));
  clamped = rows (a) == n + 2;
  if clamped, slopes = a([1, end],:); a = a(2:end-1,:); end
  a = a(order,:);
  h = gather (diff (x));
  s = diff (a) ./ h;
  inner = 6 * diff (s);
  middle = 2 * (h(1:end-1) + h(2:end));
  if clamped
    right = [6 * (s(1,:) - slopes(1,:)); inner; 6 * (slopes(2,:) - s(end,:))];
    second = tridiagonal (h, [2*h(1); middle; 2*h(end)], h, right);
  elseif n == 2
    second = zeros (2, columns (a));
  elseif n == 3
    second = repmat (inner / 3 / (h(1) + h(2)), 3, 1);
  else
    % The first two pieces are of one cubic, and the last two: this gives the outer second derivatives by the inner ones.
    [h1, h2, g2, g1] = deal (h(1), h(2), h(end-1), h(end));
    [lower, upper] = deal (h(2:end-1));
    middle(1) += h1 * (h1 + h2) / h2;
    upper(1) -= h1 ^ 2 / h2;
    middle(end) += g1 * (g1 + g2) / g2;
    lower(end) -= g1 ^ 2 / g2;
    second = tridiagonal (lower, middle, upper, inner);
    first = ((h1 + h2) * second(1,:) - h1 * second(2,:)) / h2;
    last = ((g1 + g2) * second(end,:) - g1 * second(end-1,:)) / g2;
    second = [first; second; last];
  end
  p = {diff(second) ./ (6 * h), second(1:end-1,:) / 2, s - h .* (2 * second(1:end-1,:) + second(2:end,:)) / 6, a(1:end-1,:)};
  p = cellfun (@(c) reshape (c.', [], 1), p, "UniformOutput", false);
  pp = mkpp (x, [p{:}], outer);
end
% Thomas's elimination, of all columns of `right` at once.
function right = tridiagonal (lower, middle, upper, right)
  [lower, middle, upper, right] = deal (gather (lower), gather (middle), gather (upper), gather (right));
  n = numel (middle);
  if columns (right) == 1
    for i = 2:n
      f = lower(i-1) / middle(i-1);
      middle(i) -= f * upper(i-1);
      right(i) -= f * right(i-1);
    end
    right(n) /= middle(n);
    for i = n-1:-1:1, right(i) = (right(i) - upper(i) * right(i+1)) / middle(i); end
  else
    for i = 2:n
      f = lower(i-1) / middle(i-1);
      middle(i) -= f * upper(i-1);
      right(i,:) -= f * right(i-1,:);
    end
    right(n,:) /= middle(n);
    for i = n-1:-1:1, right(i,:) = (right(i,:) - upper(i) * right(i+1,:)) / middle(i); end
  end
end
% What is not known is filled in, in each curve by the spline through what is.
function a = filled (x, a)
  x = x(:);
  for k = find (any (isnan (a)))
    known = ! isnan (a(:,k));
    if nnz (known) < 2, error ("spline: requires at least 2 points"); end
    a(! known,k) = ppval (through (x(known), a(known,k), 1), x(! known));
  end
end

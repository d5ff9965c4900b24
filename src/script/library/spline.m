function y = spline (x, y, xi)
  % Cubic, twice continuously differentiable; not-a-knot ends, or given slopes if Y has two more elements than X.
  if nargin < 2, print_usage (); end
  n = numel (x);
  if ! isvector (y)
    % A curve for each row, whose pieces stand together.
    outer = size (y)(1:end-1);
    y = reshape (y, prod (outer), []);
    coefs = [];
    for k = 1:rows (y)
      one = spline (x, y(k,:));
      coefs(k:rows (y):rows (y)*one.pieces,1:4) = one.coefs;
    end
    y = mkpp (one.breaks, coefs, outer);
    if nargin > 2, y = ppval (y, xi); end
    return
  end
  if n < 2, error ("spline: requires at least 2 points"); end
  [x, order] = sort (x(:));
  y = y(:);
  if numel (y) == n && any (isnan (y))
    % What is not known is gone round.
    [x, y] = deal (x(! isnan (y(order))), y(order)(! isnan (y(order))));
    y = spline (x, y);
    if nargin > 2, y = ppval (y, xi); end
    return
  end
  clamped = numel (y) == n + 2;
  if clamped, slopes = y([1, end]); y = y(2:end-1); end
  a = y(order);
  h = diff (x);
  s = diff (a) ./ h;
  if clamped
    m = diag ([2*h(1); 2*(h(1:end-1)+h(2:end)); 2*h(end)]) + diag (h, 1) + diag (h, -1);
    right = 6 * [s(1) - slopes(1); diff(s); slopes(2) - s(end)];
    second = m \ right;
  elseif n == 2
    second = [0; 0];
  elseif n == 3
    second = repmat (2 * (s(2) - s(1)) / (h(1) + h(2)), 3, 1);
  else
    m = zeros (n);
    m(1, 1:3) = [-h(2), h(1) + h(2), -h(1)];
    m(n, n-2:n) = [-h(end), h(end) + h(end-1), -h(end-1)];
    for i = 2:n-1, m(i, i-1:i+1) = [h(i-1), 2 * (h(i-1) + h(i)), h(i)]; end
    second = m \ [0; 6 * diff(s); 0];
  end
  p = [diff(second) ./ (6*h), second(1:end-1) / 2, s - h .* (2*second(1:end-1) + second(2:end)) / 6, a(1:end-1)];
  y = mkpp (x, p);
  if nargin > 2, y = ppval (y, xi); end
end

function y = pchip (x, y, xi)
  % Cubic, monotone where the samples are: slopes as Fritsch and Carlson limit them.
  if nargin < 2, print_usage (); end
  n = numel (x);
  if ! isvector (y)
    % A curve for each row, whose pieces stand together.
    outer = size (y)(1:end-1);
    y = reshape (y, prod (outer), []);
    coefs = [];
    for k = 1:rows (y)
      one = pchip (x, y(k,:));
      coefs(k:rows (y):rows (y)*one.pieces,1:4) = one.coefs;
    end
    y = mkpp (one.breaks, coefs, outer);
    if nargin > 2, y = ppval (y, xi); end
    return
  end
  if n < 2, error ("pchip: X must be at least of length 2"); end
  [x, order] = sort (x(:));
  a = y(:)(order);
  h = diff (x);
  s = diff (a) ./ h;
  d = zeros (n, 1);
  if n == 2
    d(:) = s;
  else
    for i = 2:n-1
      if s(i-1) * s(i) > 0
        w1 = 2 * h(i) + h(i-1);
        w2 = h(i) + 2 * h(i-1);
        d(i) = (w1 + w2) / (w1 / s(i-1) + w2 / s(i));
      end
    end
    d(1) = end_slope (h(1), h(2), s(1), s(2));
    d(n) = end_slope (h(end), h(end-1), s(end), s(end-1));
  end
  p = [(d(1:end-1) + d(2:end) - 2*s) ./ h.^2, (3*s - 2*d(1:end-1) - d(2:end)) ./ h, d(1:end-1), a(1:end-1)];
  y = mkpp (x, p);
  if nargin > 2, y = ppval (y, xi); end
end
function d = end_slope (h1, h2, s1, s2)
  d = ((2*h1 + h2) * s1 - h1 * s2) / (h1 + h2);
  if sign (d) != sign (s1)
    d = 0;
  elseif sign (s1) != sign (s2) && abs (d) > abs (3*s1)
    d = 3 * s1;
  end
end

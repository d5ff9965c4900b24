function y = pchip (x, y, xi)
  % Cubic, monotone where the samples are: slopes as Fritsch and Carlson limit them.
  if nargin < 2, print_usage (); end
  n = numel (x);
  outer = 1;
  % A curve for each row, whose pieces stand together.
  if isvector (y), a = y(:).'; else, outer = size (y)(1:end-1); a = reshape (y, prod (outer), []); end
  if n < 2, error ("pchip: X must be at least of length 2"); end
  [x, order] = sort (x(:).');
  a = a(:,order);
  h = diff (x);
  s = diff (a, 1, 2) ./ h;
  if n == 2
    d = [s, s];
  else
    [before, after] = deal (s(:,1:end-1), s(:,2:end));
    w1 = 2 * h(2:end) + h(1:end-1);
    w2 = h(2:end) + 2 * h(1:end-1);
    inner = (w1 + w2) ./ (w1 ./ before + w2 ./ after);
    inner(! (before .* after > 0)) = 0;
    d = [end_slope(h(1), h(2), s(:,1), s(:,2)), inner, end_slope(h(end), h(end-1), s(:,end), s(:,end-1))];
  end
  p = {(d(:,1:end-1) + d(:,2:end) - 2*s) ./ h.^2, (3*s - 2*d(:,1:end-1) - d(:,2:end)) ./ h, d(:,1:end-1), a(:,1:end-1)};
  p = cellfun (@(c) reshape (c, [], 1), p, "UniformOutput", false);
  y = mkpp (x, [p{:}], outer);
  if nargin > 2, y = ppval (y, xi); end
end
function d = end_slope (h1, h2, s1, s2)
  d = ((2*h1 + h2) * s1 - h1 * s2) / (h1 + h2);
  steep = sign (s1) != sign (s2) & abs (d) > abs (3*s1);
  d(steep) = 3 * s1(steep);
  d(sign (d) != sign (s1)) = 0;
end

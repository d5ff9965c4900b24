function [r, p] = corrcoef (x, y)
  if nargin < 1, print_usage (); end
  if nargin > 1
    if numel (x) != numel (y), error ("corrcoef: X and Y must be the same size"); end
    x = [x(:), y(:)];
  end
  if isempty (x), r = NaN; p = NaN; return; end
  c = cov (x);
  s = sqrt (diag (c));
  r = c ./ (s * s');
  n = rows (r);
  at = 1:n+1:n*n;
  one = r(at);
  one(! isnan (one)) = 1;
  r(at) = one;
  if nargout < 2, return; end
  % Student's test of no correlation, on both sides.
  left = rows (x) - 2;
  t2 = left * r .^ 2 ./ (1 - r .^ 2);
  p = ones (n);
  off = ! eye (n);
  p(off) = betainc (left ./ (left + t2(off)), left / 2, 1/2);
end

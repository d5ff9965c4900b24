function r = corrcoef (x, y)
  if nargin < 1, print_usage (); end
  if nargin > 1
    if numel (x) != numel (y), error ("corrcoef: X and Y must be the same size"); end
    x = [x(:), y(:)];
  end
  if isempty (x), r = NaN; return; end
  c = cov (x);
  s = sqrt (diag (c));
  r = c ./ (s * s');
  n = rows (r);
  at = 1:n+1:n*n;
  one = r(at);
  one(! isnan (one)) = 1;
  r(at) = one;
end

function y = ppval (pp, xi)
  if nargin != 2, print_usage (); end
  [x, p, n, k, d] = unmkpp (pp);
  if prod (d) != 1, error ("ppval: only scalar piecewise polynomials are supported"); end
  at = max (1, min (n, lookup (x, xi(:))));
  t = xi(:) - x(at)(:);
  y = p(at, 1);
  for j = 2:k, y = y .* t + p(at, j); end
  y(isnan (xi(:))) = NaN;
  y = reshape (y, size (xi));
end

function y = ppval (pp, xi)
  if nargin != 2, print_usage (); end
  [x, p, n, k, d] = unmkpp (pp);
  many = prod (d);
  at = max (1, min (n, lookup (x, xi(:))));
  t = xi(:).' - x(at)(:).';
  p = reshape (p, many, n, k);
  y = p(:,at,1);
  for j = 2:k, y = y .* t + p(:,at,j); end
  y(:,isnan (xi(:))) = NaN;
  if many == 1
    y = reshape (y, size (xi));
  elseif isvector (xi)
    y = reshape (y, [d, numel(xi)]);
  else
    y = reshape (y, [d, size(xi)]);
  end
end

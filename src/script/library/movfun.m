function y = movfun (fcn, x, wlen)
  % Windows are cut off at the ends, where there is nothing left of them.
  if nargin < 3, print_usage (); end
  if isscalar (wlen)
    if mod (wlen, 2), before = (wlen - 1) / 2; after = before; else, before = wlen / 2; after = before - 1; end
  else
    before = wlen(1); after = wlen(2);
  end
  turned = isrow (x);
  if turned, x = x.'; end
  y = zeros (size (x));
  if isempty (x), return; end
  n = rows (x);
  for j = 1:columns (x)
    for i = 1:n
      y(i,j) = fcn (x(max (1, i - before):min (n, i + after), j));
    end
  end
  if turned, y = y.'; end
end

function [r, p, k, e] = residue (b, a, k, e)
  % Partial fractions; poles that agree to a thousandth are one pole of a higher order. Of more arguments, their sum.
  if nargin < 2 || nargin > 4, print_usage (); end
  if nargin > 2
    if nargin < 4, e = orders (a); end
    [r, p] = sum_of (b(:), a(:), k, e);
    return
  end
  b = polyreduce (b) / polyreduce (a)(1);
  a = polyreduce (a) / polyreduce (a)(1);
  if numel (b) >= numel (a), [k, b] = deconv (b, a); b = polyreduce (b); else, k = []; end
  p = roots (a);
  n = numel (p);
  [~, order] = sort (-abs (p));
  p = p(order);
  used = false (n, 1);
  poles = zeros (0, 1);
  powers = zeros (0, 1);
  for i = 1:n
    if used(i), continue; end
    same = find (! used & alike (p, p(i)));
    used(same) = true;
    poles = [poles; repmat(mean (p(same)), numel (same), 1)];
    powers = [powers; (1:numel (same))'];
  end
  p = without_dust (poles);
  m = zeros (n, n);
  for i = 1:n
    others = p;
    drop = find (p == p(i), powers(i));
    others(drop) = [];
    column = poly (others);
    m(n-numel (column)+1:n, i) = column(:);
  end
  right = zeros (n, 1);
  right(n-numel (b)+1:n) = b(:);
  r = without_dust (m \ right);
  e = powers;
end
function [b, a] = sum_of (r, p, k, e)
  if isempty (p), error ("residue: there are no poles"); end
  a = poly (p);
  b = zeros (1, max (numel (p), numel (k) + numel (p) * ! isempty (k)));
  if ! isempty (k), b(end-numel (k)-numel (p)+1:end) = conv (k(:).', a); end
  for i = 1:numel (p)
    others = p;
    same = [i; setdiff(find (alike (p, p(i))), i)];
    others(same(1:e(i))) = [];
    part = r(i) * poly (others);
    at = numel (b) - numel (part) + 1:numel (b);
    b(at) += part;
  end
  b = without_dust (b);
  b(abs (b) < 1e-14 * max (abs (b)) & ! isreal (r)) = 0;
  b = polyreduce (b);
end
function e = orders (p)
  e = zeros (numel (p), 1);
  for i = 1:numel (p), e(i) = sum (alike (p(1:i), p(i))); end
end
function same = alike (p, q)
  same = abs (p(:) - q) <= 1e-3 * max (1, abs (q));
end
function z = without_dust (z)
  % Parts that rounding has left are nothing.
  if isreal (z), return; end
  limit = 1e-14 * max (abs (z));
  re = real (z); im = imag (z);
  re(abs (re) < limit) = 0; im(abs (im) < limit) = 0;
  z = re + 1i * im;
end

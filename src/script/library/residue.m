function [r, p, k, e] = residue (b, a, varargin)
  % Partial fractions; poles that agree to a thousandth are one pole of a higher order.
  if nargin < 2 || nargin > 4, print_usage (); end
  if nargin > 2, [r, p] = joined (b, a, varargin{:}); return; end
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
    same = find (! used & abs (p - p(i)) <= 1e-3 * max (1, abs (p(i))));
    used(same) = true;
    poles = [poles; repmat(mean (p(same)), numel (same), 1)];
    powers = [powers; (1:numel (same))'];
  end
  p = poles;
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
  r = m \ right;
  e = powers;
end
function [b, a] = joined (r, p, k, e)
  % The quotient of polynomials that has these partial fractions.
  same = @(i) abs (p(:) - p(i)) <= 1e-3 * max (1, abs (p(i)));
  if nargin < 4
    e = zeros (numel (p), 1);
    for i = 1:numel (p), e(i) = sum (same (i)(1:i)); end
  end
  a = poly (p);
  b = zeros (1, numel (a) + max (numel (k), 1) - 1);
  if ! isempty (k), b = conv (k(:).', a); end
  for i = 1:numel (p)
    others = p;
    others(find (same (i), e(i))) = [];
    term = r(i) * poly (others);
    b(end-numel (term)+1:end) += term;
  end
  if isempty (k), b = polyreduce (b); end
end

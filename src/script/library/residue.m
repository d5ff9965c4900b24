function [r, p, k, e] = residue (b, a)
  % Partial fractions; poles that agree to a thousandth are one pole of a higher order.
  if nargin != 2, print_usage (); end
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

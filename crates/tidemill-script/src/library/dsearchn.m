function [idx, d] = dsearchn (x, tri, xi, outval)
  % The nearest points; with OUTVAL, only of points within one of the simplexes.
  if nargin < 2, print_usage (); end
  if nargin == 2, xi = tri; end
  if columns (x) != columns (xi), error ("dsearchn: X and XI must have the same number of columns"); end
  idx = zeros (rows (xi), 1);
  d = zeros (rows (xi), 1);
  for k = 1:rows (xi)
    [d(k), idx(k)] = min (sum ((x - xi(k,:)) .^ 2, 2));
  end
  d = sqrt (d);
  if nargin < 4 || isempty (tri), return; end
  inside = false (rows (xi), 1);
  for corners = tri.'
    shares = [x(corners,:).'; ones(1, numel (corners))] \ [xi.'; ones(1, rows (xi))];
    inside |= all (shares >= -1e-12, 1).';
  end
  idx(! inside) = outval;
  d(! inside) = outval;
end

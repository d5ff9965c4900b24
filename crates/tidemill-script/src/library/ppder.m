function d = ppder (pp, m)
  if nargin < 1, print_usage (); end
  if nargin < 2, m = 1; end
  if ! (isstruct (pp) && isfield (pp, "form") && strcmp (pp.form, "pp")), error ("ppder: PP must be a structure"); end
  [x, p, n, k, dims] = unmkpp (pp);
  for step = 1:m
    if k <= 1, p = zeros (rows (p), 1); k = 1; break; end
    p = p(:,1:k-1) .* (k-1:-1:1);
    k--;
  end
  d = mkpp (x, p, dims);
end

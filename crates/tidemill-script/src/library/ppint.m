function q = ppint (pp, c)
  if nargin < 1, print_usage (); end
  if nargin < 2, c = 0; end
  if ! (isstruct (pp) && isfield (pp, "form") && strcmp (pp.form, "pp")), error ("ppint: PP must be a structure"); end
  [x, p, n, k, dims] = unmkpp (pp);
  p = [p ./ (k:-1:1), zeros(rows (p), 1)];
  each = prod (dims);
  p(1:each,end) = c(:);
  for piece = 2:n
    before = (piece - 2) * each + (1:each);
    width = x(piece) - x(piece-1);
    value = zeros (each, 1);
    for column = 1:k+1, value = value * width + p(before,column); end
    p(before + each,end) = value;
  end
  q = mkpp (x, p, dims);
end

function tau = kendall (x, y)
  if nargin < 1, print_usage (); end
  if nargin < 2, y = x; end
  is_data = @(v) isnumeric (v) || islogical (v);
  if ! (is_data (x) && is_data (y)), error ("kendall: X and Y must be numeric matrices or vectors"); end
  if ndims (x) != 2 || ndims (y) != 2, error ("kendall: X and Y must be 2-D matrices or vectors"); end
  if isrow (x), x = x.'; end
  if isrow (y), y = y.'; end
  n = rows (x);
  if isa (x, "single") || isa (y, "single"), tau = zeros (columns (x), columns (y), "single"); else, tau = zeros (columns (x), columns (y)); end
  if n == 1, tau(:) = 1; return; end
  [x, y] = deal (double (x), double (y));
  for i = 1:columns (x)
    for j = 1:columns (y)
      sx = sign (x(:,i) - x(:,i).'); sy = sign (y(:,j) - y(:,j).');
      tau(i,j) = sum (sum (sx .* sy)) / sqrt (sum (sum (sx .^ 2)) * sum (sum (sy .^ 2)));
    end
  end
end

function tau = kendall (x, y)
  if nargin < 1, print_usage (); end
  if nargin < 2, y = x; end
  if isrow (x), x = x.'; end
  if isrow (y), y = y.'; end
  n = rows (x);
  tau = zeros (columns (x), columns (y));
  for i = 1:columns (x)
    for j = 1:columns (y)
      sx = sign (x(:,i) - x(:,i).'); sy = sign (y(:,j) - y(:,j).');
      tau(i,j) = sum (sum (sx .* sy)) / sqrt (sum (sum (sx .^ 2)) * sum (sum (sy .^ 2)));
    end
  end
end

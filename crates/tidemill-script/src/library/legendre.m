function y = legendre (n, x, normalization)
  % Associated Legendre functions of degree N, one row an order, by the recurrence over degrees.
  if nargin < 2, print_usage (); end
  if nargin < 3, normalization = "unnorm"; end
  if ! (isscalar (n) && isreal (n) && n >= 0 && n == fix (n)), error ("legendre: N must be a real non-negative integer"); end
  if ! (isnumeric (x) && isreal (x) && all (x(:) >= -1 & x(:) <= 1)), error ("legendre: X must be real-valued vector in the range -1 <= X <= 1"); end
  if ! any (strcmp (normalization, {"unnorm", "norm", "sch"})), error ("legendre: NORMALIZATION option must be \"unnorm\", \"norm\", or \"sch\""); end
  if isvector (x), dims = numel (x); else, dims = size (x); end
  x = x(:).';
  y = zeros (n + 1, numel (x));
  s = sqrt (1 - x .^ 2);
  for m = 0:n
    low = prod (1:2:2*m-1) * (-s) .^ m;
    value = low;
    before = zeros (size (x));
    for l = m+1:n
      [before, value] = deal (value, ((2*l - 1) * x .* value - (l + m - 1) * before) / (l - m));
    end
    switch normalization
      case "norm", value *= (-1) ^ m * sqrt ((n + 0.5) * prod (1 ./ (n-m+1:n+m)));
      case "sch", if m > 0, value *= (-1) ^ m * sqrt (2 * prod (1 ./ (n-m+1:n+m))); end
    end
    y(m+1,:) = value;
  end
  y = reshape (y, [n + 1, dims]);
end

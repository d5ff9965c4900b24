function y = legendre (n, x, normalization)
  % Associated Legendre functions of degree N, one row an order, by the recurrence over degrees.
  if nargin < 2, print_usage (); end
  if nargin < 3, normalization = "unnorm"; end
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
end

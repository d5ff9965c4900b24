function y = rescale (x, low, high)
  if nargin < 1, print_usage (); end
  if nargin < 3, low = 0; high = 1; end
  least = min (x(:));
  most = max (x(:));
  y = low + (x - least) / (most - least) * (high - low);
end

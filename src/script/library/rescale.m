function y = rescale (x, low, high)
  if nargin < 1, print_usage (); end
  if nargin < 3, low = 0; high = 1; end
  least = min (x(:));
  most = max (x(:));
  if ! isfloat (x), x = double (x); end
  if least == most
    y = low + zeros (size (x));
  else
    y = low + (x - least) / (most - least) * (high - low);
  end
end

function y = ifftshift (x, dim)
  if nargin < 1, print_usage (); end
  if nargin > 1
    y = circshift (x, -floor (size (x, dim) / 2), dim);
  else
    y = x;
    for d = 1:ndims (x), y = circshift (y, -floor (size (x, d) / 2), d); end
  end
end

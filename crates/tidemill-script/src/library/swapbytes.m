function y = swapbytes (x)
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("swapbytes: invalid object of class '%s'", class (x)); end
  n = sizeof (x(1:min (1, end)));
  if isempty (x) || n == 1
    y = x;
    return
  end
  bytes = reshape (typecast (x(:), 'uint8'), n, numel (x));
  y = reshape (typecast (bytes(n:-1:1,:)(:), underlyingType (x)), size (x));
end

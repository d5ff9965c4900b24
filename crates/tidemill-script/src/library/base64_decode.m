function x = base64_decode (text, dims)
  if nargin < 1, print_usage (); end
  bytes = base64_bytes ("base64_decode", text);
  if mod (numel (bytes), 8) != 0, error ("base64_decode: incorrect input argument"); end
  x = typecast (bytes, "double");
  if nargin > 1, x = reshape (x, dims); end
end

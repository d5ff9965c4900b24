function text = base64_encode (x)
  % The bytes of numbers, three of them as four letters.
  if nargin != 1, print_usage (); end
  if ! isnumeric (x), error ("base64_encode: encoding is supported only for numeric arrays"); end
  if ! isreal (x), error ("base64_encode: encoding complex data is not supported"); end
  bytes = double (typecast (x(:).', "uint8"));
  text = base64_letters (bytes);
end

function [x, map] = gray2ind (in, n = [])
  if nargin < 1, print_usage (); end
  if ! (isnumeric (in) || islogical (in)) || ! isreal (in) || size (in, 3) != 1
    error ("gray2ind: I must be a grayscale or binary image");
  end
  if isempty (n), if islogical (in), n = 2; else, n = 64; end, end
  if ! (isscalar (n) && n >= 1 && n <= 65536 && n == fix (n))
    error ("gray2ind: N must be a positive integer in the range [1, 65536]");
  end
  if isfloat (in) && any (in(:) < 0 | in(:) > 1)
    error ("gray2ind: floating point images may only contain values between 0 and 1");
  elseif ! (islogical (in) || isfloat (in) || any (isa (in, {"uint8", "uint16", "int16"})))
    error ("gray2ind: invalid data type '%s'", class (in));
  end
  n = double (n);
  x = im2double (in) * (n - 1);
  if n <= 256, x = uint8 (x); else, x = uint16 (x); end
  map = gray (n);
end

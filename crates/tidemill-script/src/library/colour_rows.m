function [list, shape] = colour_rows (who, what, in)
  % Integers are of pictures alone. SHAPE is empty for a map.
  if ! (isfloat (in) || any (isa (in, {"uint8", "int8", "uint16", "int16"})))
    error ("%s: %s of invalid data type '%s'", who, what, class (in));
  end
  if ndims (in) > 4, error ("%s: invalid %s with more than 4 dimensions", who, what); end
  shape = [];
  if ndims (in) > 2 && size (in, 3) == 3
    shape = size (in);
    if isa (in, "int16"), in = (double (in) + 32768) / 65535;
    elseif isa (in, "int8"), in = (double (in) + 128) / 255;
    elseif isinteger (in), in = double (in) / double (intmax (underlyingType (in))); end
    in = reshape (permute (in, [1, 2, 4, 3]), [], 3);
  end
  if ! (isfloat (in) && isreal (in) && ndims (in) == 2 && columns (in) == 3)
    error ("%s: %s must be a colormap or %s image", who, what, what);
  end
  list = in;
end

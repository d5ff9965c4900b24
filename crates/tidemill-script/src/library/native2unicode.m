function text = native2unicode (bytes, codepage)
  if nargin < 1, print_usage (); end
  if nargin > 1 && ! isempty (codepage) && ! any (strcmpi (codepage, {"utf-8", "utf8", "us-ascii", "ascii"}))
    error ("native2unicode: codepage '%s' is not supported: texts are UTF-8", codepage);
  end
  if ischar (bytes), text = bytes; return; end
  if ! isnumeric (bytes) || ! isvector (bytes), error ("native2unicode: NATIVE_BYTES must be a numeric vector"); end
  text = char (bytes);
end

function bytes = unicode2native (text, codepage)
  if nargin < 1, print_usage (); end
  if nargin > 1 && ! isempty (codepage) && ! any (strcmpi (codepage, {"utf-8", "utf8", "us-ascii", "ascii"}))
    error ("unicode2native: codepage '%s' is not supported: texts are UTF-8", codepage);
  end
  if ! ischar (text) || ! (isvector (text) || isempty (text)), error ("unicode2native: UTF8_STR must be a character vector"); end
  bytes = uint8 (text);
end

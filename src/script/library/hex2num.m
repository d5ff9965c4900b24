function n = hex2num (s, kind)
  if nargin < 1, print_usage (); end
  if nargin < 2, kind = "double"; end
  if ! (ischar (s) || iscellstr (s)), error ("hex2num: S must be a string or cellstring"); end
  switch kind
    case {"double", "int64", "uint64"}, width = 16;
    case {"single", "int32", "uint32"}, width = 8;
    case {"int16", "uint16"}, width = 4;
    case {"int8", "uint8", "char", "logical"}, width = 2;
    otherwise, error ("hex2num: unrecognized CLASS '%s'", kind);
  end
  if any (strcmp (kind, {"char", "logical"})), stored = "uint8"; else, stored = kind; end
  if ischar (s), s = cellstr (s); end
  n = zeros (size (s), stored);
  for k = 1:numel (s)
    digits = lower (strtrim (s{k}));
    if numel (digits) > width, error ("hex2num: S must be no more than %d characters", width); end
    at = zeros (1, numel (digits));
    for d = 1:numel (digits)
      found = find ("0123456789abcdef" == digits(d));
      if isempty (found), error ("hex2num: invalid character '%s' found in string S", digits(d)); end
      at(d) = found - 1;
    end
    at(end+1:width) = 0;
    bytes = uint8 (16 * at(1:2:end) + at(2:2:end));
    n(k) = typecast (bytes(end:-1:1), stored);
  end
  if strcmp (kind, "char"), n = char (n); end
  if strcmp (kind, "logical"), n = logical (n); end
end

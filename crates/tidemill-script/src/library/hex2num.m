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
  shape = size (s);
  s = strtrim (s(:));
  long = cellfun (@numel, s);
  if any (long > width), error ("hex2num: S must be no more than %d characters", width); end
  digits = char ([s; {blanks(width)}])(1:end-1,1:width);
  written = (1:width) <= long;
  values = -ones (1, 256);
  values(double (["0":"9", "a":"f"]) + 1) = 0:15;
  values(double ("A":"F") + 1) = 10:15;
  at = reshape (values(double (digits) + 1), size (digits));
  wrong = find ((written & at < 0).', 1);
  if ! isempty (wrong), error ("hex2num: invalid character '%s' found in string S", lower (digits.'(wrong))); end
  at(! written) = 0;
  bytes = uint8 (16 * at(:,1:2:end) + at(:,2:2:end));
  n = reshape (typecast (bytes(:,end:-1:1).'(:), stored), shape);
  if strcmp (kind, "char"), n = char (n); end
  if strcmp (kind, "logical"), n = logical (n); end
end

function c = bitget (a, n)
  if nargin != 2, print_usage (); end
  if isinteger (a), one = cast (1, underlyingType (a)); most = sizeof (one) * 8; elseif isa (a, "single"), one = 1; most = 24; else, one = 1; most = 53; end
  if any (n(:) < 1 | n(:) > most), error ("bitget: N must be in the range [1,%d]", most); end
  c = bitand (a, bitshift (one, double (n) - 1)) != cast (0, underlyingType (a));
end

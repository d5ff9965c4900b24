function c = bitset (a, n, value)
  if nargin < 2, print_usage (); end
  if nargin < 3, value = true; end
  if any (a(:) < 0), error ("bitset: A must be >= 0"); end
  if isinteger (a), one = cast (1, underlyingType (a)); most = sizeof (one) * 8; elseif isa (a, "single"), one = 1; most = 24; else, one = 1; most = 53; end
  if any (n(:) < 1 | n(:) > most), error ("bitset: N must be in the range [1,%d]", most); end
  mask = bitshift (one, double (n) - 1);
  on = bitor (a, mask);
  off = bitxor (on, mask + zeros (size (on), underlyingType (on)));
  chosen = logical (value) & true (size (on));
  c = on;
  c(! chosen) = off(! chosen);
end

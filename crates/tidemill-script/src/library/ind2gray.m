function out = ind2gray (x, map)
  if nargin != 2, print_usage (); end
  colours = indexed_colours ("ind2gray", x, map);
  out = 0.298936 * colours{1} + 0.587043 * colours{2} + 0.114021 * colours{3};
  if isinteger (x), out = cast (out * double (intmax (underlyingType (x))), underlyingType (x)); else, out = cast (out, underlyingType (x)); end
end

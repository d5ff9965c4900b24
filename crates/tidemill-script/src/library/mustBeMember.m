function mustBeMember (x, valid)
  if nargin != 2, print_usage (); end
  name = inputname (1);
  if isempty (name), name = "input"; end
  n = sum (! ismember (x, valid)(:));
  if n > 0, error ("%s must be one of the specified valid values; found %d elements that were not", name, n); end
end

function mustBeNumeric (x)
  if nargin != 1, print_usage (); end
  if isnumeric (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  error ("%s must be numeric; found a %s", name, class (x));
end

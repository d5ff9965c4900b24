function mustBeNumericOrLogical (x)
  if nargin != 1, print_usage (); end
  if isnumeric (x) || islogical (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  error ("%s must be numeric or logical; found a %s", name, class (x));
end

function mustBeNonempty (x)
  if nargin != 1, print_usage (); end
  if ! isempty (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  error ("%s must not be empty", name);
end

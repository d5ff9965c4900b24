function mustBeNonsparse (x)
  if nargin != 1, print_usage (); end
  if ! issparse (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  error ("%s must be nonsparse; it is sparse", name);
end

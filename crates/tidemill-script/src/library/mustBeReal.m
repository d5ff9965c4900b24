function mustBeReal (x)
  if nargin != 1, print_usage (); end
  if isreal (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  error ("%s must be real", name);
end

function mustBeInteger (x)
  if nargin != 1, print_usage (); end
  if isinteger (x) || islogical (x), return; end
  name = inputname (1);
  if isempty (name), name = "input"; end
  but = "";
  if ! isnumeric (x)
    but = sprintf ("it was non-numeric (found a %s)", class (x));
  elseif ! isreal (x)
    but = "it was complex";
  elseif any (! isfinite (x(:)))
    but = "there were non-finite values";
  elseif any (x(:) != fix (x(:)))
    but = "it had fractional values in some elements";
  end
  if ! isempty (but), error ("%s must be integer-valued; but %s", name, but); end
end

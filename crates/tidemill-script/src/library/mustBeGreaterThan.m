function mustBeGreaterThan (x, c)
  if nargin != 2, print_usage (); end
  must_be ("mustBeGreaterThan", {x}, inputname (1), @(x) x > c, sprintf ("greater than %f; found %%d elements that were not", c), "values");
end

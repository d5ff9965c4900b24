function mustBeGreaterThanOrEqual (x, c)
  if nargin != 2, print_usage (); end
  must_be ("mustBeGreaterThanOrEqual", {x}, inputname (1), @(x) x >= c, sprintf ("greater than or equal to %f; found %%d elements that were not", c), "values");
end

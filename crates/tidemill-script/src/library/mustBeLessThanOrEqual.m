function mustBeLessThanOrEqual (x, c)
  if nargin != 2, print_usage (); end
  must_be ("mustBeLessThanOrEqual", {x}, inputname (1), @(x) x <= c, sprintf ("less than or equal to %f; found %%d elements that were not", c), "values");
end

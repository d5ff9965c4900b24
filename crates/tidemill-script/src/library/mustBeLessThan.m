function mustBeLessThan (x, c)
  if nargin != 2, print_usage (); end
  must_be ("mustBeLessThan", {x}, inputname (1), @(x) x < c, sprintf ("less than %f; found %%d elements that were not", c), "values");
end

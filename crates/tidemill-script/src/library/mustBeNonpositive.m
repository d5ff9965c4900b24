function mustBeNonpositive (varargin)
  must_be ("mustBeNonpositive", varargin, inputname (1), @(x) x <= 0, "non-positive; found %d elements that were not", "values");
end

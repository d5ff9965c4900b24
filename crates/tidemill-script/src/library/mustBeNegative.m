function mustBeNegative (varargin)
  must_be ("mustBeNegative", varargin, inputname (1), @(x) x < 0, "negative; found %d elements that were not", "values");
end

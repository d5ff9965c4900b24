function mustBeNonnegative (varargin)
  must_be ("mustBeNonnegative", varargin, inputname (1), @(x) x >= 0, "non-negative; found %d elements that were not", "values");
end

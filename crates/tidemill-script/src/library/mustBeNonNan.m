function mustBeNonNan (varargin)
  must_be ("mustBeNonNan", varargin, inputname (1), @(x) ! isnan (x), "non-NaN; found %d elements that were not", "indexes");
end

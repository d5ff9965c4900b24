function mustBePositive (varargin)
  must_be ("mustBePositive", varargin, inputname (1), @(x) x > 0, "positive; found %d elements that were not", "values");
end

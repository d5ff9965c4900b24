function mustBeNonzero (varargin)
  must_be ("mustBeNonzero", varargin, inputname (1), @(x) x != 0, "non-zero; found %d elements that were zero", "indexes");
end

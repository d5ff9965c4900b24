function mustBeFinite (varargin)
  must_be ("mustBeFinite", varargin, inputname (1), @isfinite, "finite; found %d non-finite elements", "indexes");
end

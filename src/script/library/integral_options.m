function [vectorized, options] = integral_options (who, given, reltol)
  % Tolerances for quadgk, no looser than RELTOL.
  exact = reltol;
  vectorized = true;
  abstol = 1e-10;
  if mod (numel (given), 2), error ("%s: properties and values must come in pairs", who); end
  for k = 1:2:numel (given)
    [name, value] = given{k:k+1};
    if ! ischar (name), error ("%s: property PROP must be a string", who); end
    switch lower (name)
      case "abstol", abstol = tolerance (who, "AbsTol", value);
      case "reltol", reltol = tolerance (who, "RelTol", value);
      case "method"
        if ! any (strcmpi (value, {"auto", "tiled", "iterated"})), error ("%s: unrecognized method '%s'", who, value); end
      case "vectorized"
        if ! (isscalar (value) && (isnumeric (value) || islogical (value)) && any (value == [0, 1]))
          error ("%s: Vectorized must be a logical value", who);
        end
        vectorized = logical (value);
      case {"maxfunevals", "failureplot", "singular"}
      otherwise, error ("%s: unknown property '%s'", who, name);
    end
  end
  options = {"AbsTol", min(abstol, 1e-10), "RelTol", min(reltol, exact)};
end
function value = tolerance (who, name, value)
  if ! (isnumeric (value) && isscalar (value) && value >= 0), error ("%s: %s value must be a numeric scalar >= 0", who, name); end
end

function [tolerances, vectorized] = area_options (who, xa, xb, args, loosest)
  % The tolerances of integrals over areas and volumes, no looser than a relative one, and whether the function takes
  % arrays.
  real_scalar = @(x) isnumeric (x) && isreal (x) && isscalar (x);
  if mod (numel (args), 2) || ! real_scalar (xa) || ! real_scalar (xb)
    error ("Octave:invalid-fun-call", "Invalid call to %s", who);
  end
  abstol = 1e-10; reltol = loosest; vectorized = true;
  is_tolerance = @(x) isnumeric (x) && isscalar (x) && x >= 0;
  for k = 1:2:numel (args)
    if ! ischar (args{k}), error ("%s: property PROP must be a string", who); end
    value = args{k+1};
    switch lower (args{k})
      case "abstol"
        if ! is_tolerance (value), error ("%s: AbsTol value must be a numeric scalar >= 0", who); end
        abstol = value;
      case "reltol"
        if ! is_tolerance (value), error ("%s: RelTol value must be a numeric scalar >= 0", who); end
        reltol = value;
      case "vectorized"
        if ! isscalar (value) || ! isreal (value), error ("%s: Vectorized must be a logical value", who); end
        vectorized = value;
      case "method"
        if ! any (strcmpi (value, {"auto", "tiled", "iterated"})), error ("%s : unrecognized method '%s'", who, value); end
      otherwise
        if ! strcmp (who, "quad2d") || ! area_only (args{k}, value), error ("%s: unknown property '%s'", who, args{k}); end
    end
  end
  tolerances = {"AbsTol", min(abstol, 1e-10), "RelTol", min(reltol, loosest)};
end
function known = area_only (name, value)
  known = any (strcmpi (name, {"MaxFunEvals", "Singular", "FailurePlot"}));
  if strcmpi (name, "MaxFunEvals")
    if ! (isnumeric (value) && isscalar (value) && value == fix (value) && value >= 1)
      error ("quad2d: MaxFunEvals value must be a scalar integer >= 1");
    end
  elseif known && ! (isscalar (value) && isreal (value))
    name = {"Singular", "FailurePlot"}{strcmpi(name, {"Singular", "FailurePlot"})};
    error ("quad2d: %s must be a logical value", name);
  end
end

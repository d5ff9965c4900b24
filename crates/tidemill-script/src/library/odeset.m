function options = odeset (varargin)
  options = struct ("AbsTol", [], "BDF", [], "Events", [], "InitialSlope", [], "InitialStep", [], "Jacobian", [], ...
                    "JConstant", [], "JPattern", [], "Mass", [], "MassSingular", [], "MaxOrder", [], "MaxStep", [], ...
                    "MStateDependence", [], "MvPattern", [], "NonNegative", [], "NormControl", [], "OutputFcn", [], ...
                    "OutputSel", [], "Refine", [], "RelTol", [], "Stats", [], "Vectorized", []);
  k = 1;
  while k <= nargin && isstruct (varargin{k})
    for name = fieldnames (varargin{k})'
      value = varargin{k}.(name{1});
      if ! isempty (value), options.(name{1}) = value; end
    end
    k++;
  end
  known = fieldnames (options);
  for i = k:2:nargin
    at = find (strcmpi (varargin{i}, known), 1);
    if isempty (at), name = varargin{i}; else, name = known{at}; end
    options.(name) = varargin{i+1};
  end
end

function q = integral (fcn, a, b, varargin)
  abstol = 1e-10;
  reltol = 1e-6;
  arrays = false;
  points = [];
  if nargin < 3 || mod (numel (varargin), 2), print_usage (); end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "abstol", abstol = varargin{k+1};
      case "reltol", reltol = varargin{k+1};
      case "arrayvalued", arrays = varargin{k+1};
      case "waypoints", points = varargin{k+1};
      otherwise, error ("integral: unknown property '%s'", varargin{k});
    end
  end
  if abstol < 0, error ("quadcc: absolute tolerance must be >=0"); end
  if reltol < 0, error ("quadcc: relative tolerance must be >=0"); end
  if arrays, q = quadv (fcn, a, b, min (abstol, 1e-10)); else, q = quadgk (fcn, double (a), double (b), "AbsTol", abstol, "RelTol", min (reltol, 1e-8), "WayPoints", points); end
  if isa (a, "single") || isa (b, "single") || ! arrays && isa (points, "single"), q = single (q); elseif ! arrays, q = double (q); end
end

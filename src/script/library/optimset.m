function options = optimset (varargin)
  known = {"AutoScaling", "CheckTol", "Display", "FunValCheck", "FunctionScaling", "Jacobian", "MaxFunEvals", ...
           "MaxIter", "OutputFcn", "TolFun", "TolX", "TypicalX", "Updating", "GradObj", "Hessian"};
  options = struct ();
  if nargin == 0 && nargout > 0
    for name = known, options.(name{1}) = []; end
    return
  end
  k = 1;
  while k <= nargin && isstruct (varargin{k})
    for name = fieldnames (varargin{k})', options.(name{1}) = varargin{k}.(name{1}); end
    k++;
  end
  if mod (nargin - k + 1, 2), error ("optimset: PARAMETER/VALUE arguments must occur in pairs"); end
  for i = k:2:nargin
    name = varargin{i};
    at = find (strcmpi (name, known), 1);
    if isempty (at), at = find (strncmpi (name, known, numel (name))); end
    if numel (at) != 1, warning ("optimset: unrecognized option: %s", name); else, name = known{at}; end
    options.(name) = varargin{i+1};
  end
end

function options = optimset (varargin)
  known = {"AutoScaling", "CheckTol", "Display", "FunValCheck", "FunctionScaling", "Jacobian", "MaxFunEvals", ...
           "MaxIter", "OutputFcn", "TolFun", "TolX", "TypicalX", "Updating", "GradObj", "Hessian"};
  options = struct ();
  if nargin == 0 && nargout > 0
    for name = known, options.(name{1}) = []; end
    return
  end
  if nargin == 1 && ischar (varargin{1}), options = defaults_of (varargin{1}); return, end
  k = 1;
  while k <= nargin && isstruct (varargin{k})
    for name = fieldnames (varargin{k})'
      value = varargin{k}.(name{1});
      if k == 1 || ! isempty (value), options.(name{1}) = value; end
    end
    k++;
  end
  if nargin == 1 && k == 1, print_usage (); end
  if mod (nargin - k + 1, 2), error ("optimset: PARAMETER/VALUE arguments must occur in pairs"); end
  for i = k:2:nargin
    name = varargin{i};
    at = find (strcmpi (name, known), 1);
    if isempty (at), at = find (strncmpi (name, known, numel (name))); end
    if numel (at) != 1, warning ("optimset: unrecognized option: %s", name); else, name = known{at}; end
    options.(name) = varargin{i+1};
  end
end

% What a function takes where its options say nothing.
function options = defaults_of (name)
  switch name
    case "fzero"
      options = struct ("Display", "notify", "FunValCheck", "off", "MaxFunEvals", Inf, "MaxIter", Inf, ...
                        "OutputFcn", [], "TolX", eps);
    case "fminbnd"
      options = struct ("Display", "notify", "FunValCheck", "off", "MaxFunEvals", 500, "MaxIter", 500, ...
                        "OutputFcn", [], "TolX", 1e-4);
    case "fminsearch"
      options = struct ("Display", "notify", "FunValCheck", "off", "MaxFunEvals", [], "MaxIter", [], ...
                        "OutputFcn", [], "TolFun", 1e-4, "TolX", 1e-4);
    case "fminunc"
      options = struct ("AutoScaling", "off", "FunValCheck", "off", "FinDiffType", "forward", "GradObj", "off", ...
                        "MaxFunEvals", [], "MaxIter", 400, "OutputFcn", [], "TolFun", 1e-6, "TolX", 1e-6, ...
                        "TypicalX", []);
    case "fsolve"
      options = struct ("AutoScaling", "off", "ComplexEqn", "off", "FunValCheck", "off", "FinDiffType", "forward", ...
                        "Jacobian", "off", "MaxFunEvals", [], "MaxIter", 400, "OutputFcn", [], "Updating", "off", ...
                        "TolFun", 1e-6, "TolX", 1e-6, "TypicalX", []);
    case "lsqnonneg"
      options = struct ("MaxIter", 1e5);
    otherwise
      error ("optimset: no defaults for function '%s'", name);
  end
end

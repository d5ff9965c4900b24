function value = odeget (options, name, default)
  if nargin < 3, default = []; end
  value = default;
  if isfield (options, name) && ! isempty (options.(name)), value = options.(name); end
end

function x = linsolve (a, b, options)
  if nargin < 2, print_usage (); end
  if nargin > 2 && ! isstruct (options), error ("linsolve: OPTS must be a structure"); end
  if nargin > 2 && isfield (options, "TRANSA") && options.TRANSA, a = a'; end
  x = a \ b;
end

function [estimate, v, w, steps] = normest1 (a, varargin)
  % Of a function, the columns of what it multiplies by are asked for all at once: the norm is no estimate.
  if nargin < 1, print_usage (); end
  if is_function_handle (a) || ischar (a)
    more = varargin(3:end);
    a = feval (a, "notransp", eye (feval (a, "dim", [], more{:})), more{:});
  elseif ! isnumeric (a) || rows (a) != columns (a)
    error ("normest1: A must be a square matrix or a function handle");
  end
  [estimate, at] = max (sum (abs (a), 1));
  v = zeros (columns (a), 1);
  v(at) = 1;
  w = a * v;
  steps = [0; 1];
end

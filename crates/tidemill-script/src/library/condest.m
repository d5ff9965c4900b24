function [estimate, v] = condest (a, varargin)
  if nargin < 1, print_usage (); end
  if ! isnumeric (a) || ndims (a) > 2 || rows (a) != columns (a), error ("condest: A must be square"); end
  if isempty (a), estimate = 0; v = []; return, end
  states = warning ("query", "Octave:singular-matrix");
  warning ("off", "Octave:singular-matrix");
  inverse = inv (a);
  warning (states.state, "Octave:singular-matrix");
  [size_of_inverse, at] = max (sum (abs (inverse), 1));
  estimate = norm (a, 1) * size_of_inverse;
  v = inverse(:,at) / size_of_inverse;
end

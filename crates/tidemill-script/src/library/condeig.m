function [v, l, c] = condeig (a)
  % The lengths of left eigenvectors whose products with the right ones of length 1 are 1.
  if nargin != 1, print_usage (); end
  if ! (isnumeric (a) && ndims (a) == 2 && rows (a) == columns (a)), error ("condeig: A must be a square numeric matrix"); end
  if isempty (a)
    [v, l, c] = deal ([]);
    return
  end
  [v, l] = eig (a);
  left = inv (v);
  c = sqrt (sum (abs (left) .^ 2, 2)) .* sqrt (sum (abs (v) .^ 2, 1)).';
  if nargout < 2, v = c; end
end

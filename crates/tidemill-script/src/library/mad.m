function y = mad (x, opt, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (opt), opt = 0; end
  if ! isscalar (opt) || (opt != 0 && opt != 1), error ("mad: OPT must be 0 or 1"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isnumeric (x) || islogical (x)), error ("mad: X must be a numeric vector or matrix"); end
  if ! isscalar (dim) || dim != fix (dim) || dim < 1, error ("mad: DIM must be an integer and a valid dimension"); end
  if nargin < 3 && isequal (size (x), [0, 0]), y = NaN; return; end
  if opt == 0
    y = mean (abs (center (x, dim)), dim);
  else
    y = median (abs (x - median (x, dim)), dim);
  end
end

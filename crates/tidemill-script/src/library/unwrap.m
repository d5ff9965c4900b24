function y = unwrap (x, tol, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (tol), tol = pi; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if size (x, dim) < 2, y = x; return; end
  step = diff (x, 1, dim);
  turns = ceil (abs (step) / (2 * pi) - 0.5) .* (abs (step) > tol) .* sign (step);
  first = size (x);
  first(dim) = 1;
  y = x - 2 * pi * cat (dim, zeros (first), cumsum (turns, dim));
end

function y = polyvalm (c, x)
  if nargin != 2, print_usage (); end
  if ! (isvector (c) || isempty (c)), error ("polyvalm: first argument must be a vector"); end
  if ! issquare (x), error ("polyvalm: second argument must be a square matrix"); end
  n = rows (x);
  y = zeros (n, underlyingType (x));
  for k = c(:).'
    y = y * x + k * eye (n);
  end
end

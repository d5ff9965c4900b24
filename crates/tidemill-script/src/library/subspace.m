function angle = subspace (a, b)
  if nargin != 2, print_usage (); end
  if ndims (a) != 2 || ndims (b) != 2, error ("subspace: A and B must be vectors or 2-D arrays"); end
  if rows (a) != rows (b), error ("subspace: column dimensions of a and b must match"); end
  a = orth (a);
  b = orth (b);
  c = a' * b;
  s = min (svd (c));
  if s^2 > 0.5
    if columns (a) >= columns (b), c = b - a * c; else, c = a - b * c'; end
    angle = asin (min (norm (c), 1));
  else
    angle = acos (s);
  end
end

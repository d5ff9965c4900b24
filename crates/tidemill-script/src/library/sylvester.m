function x = sylvester (a, b, c)
  if nargin != 3, print_usage (); end
  if rows (a) != columns (a), error ("sylvester: argument A must be a square matrix"); end
  if rows (b) != columns (b), error ("sylvester: argument B must be a square matrix"); end
  n = rows (a); m = rows (b);
  if rows (c) != n || columns (c) != m, error ("sylvester: nonconformant matrices"); end
  x = reshape ((kron (eye (m), a) + kron (b.', eye (n))) \ c(:), n, m);
end

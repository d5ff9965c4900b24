function l = logm (a)
  if nargin < 1, print_usage (); end
  if ndims (a) != 2 || rows (a) != columns (a), error ("logm: A must be a square matrix"); end
  if isempty (a), l = a; return; end
  if isa (a, "single"), l = single (logm (double (a))); return; end
  if isdiag (a), l = diag (log (diag (a))); return; end
  if ishermitian (a) || ! isreal (a) || ! all (real (eig (a)) > 0)
    [v, d] = eig (a);
    if ishermitian (a), l = v * diag (log (diag (d))) * v'; else, l = v * diag (log (diag (d))) / v; end
    return
  end
  % Roots until it is near the identity, then log (x) = 2 atanh ((x - 1) / (x + 1)).
  n = rows (a);
  k = 0;
  while norm (a - eye (n), 1) > 0.05 && k < 60
    a = sqrtm (a);
    k++;
  end
  z = (a - eye (n)) / (a + eye (n));
  square = z * z;
  term = z;
  l = z;
  for j = 3:2:21
    term = term * square;
    l += term / j;
  end
  l *= 2 ^ (k + 1);
end

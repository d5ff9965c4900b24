function b = chol2inv (r)
  if nargin != 1, print_usage (); end
  if rows (r) != columns (r), error ("chol2inv: R must be a square matrix"); end
  r = inv (triu (r));
  b = r * r';
end

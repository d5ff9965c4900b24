function c = rcond (a)
  if nargin != 1, print_usage (); end
  if rows (a) != columns (a), error ("rcond: A must be a square matrix"); end
  if isempty (a), c = Inf; return; end
  if any (isnan (a(:))), c = NaN; return; end
  if any (isinf (a(:))), c = 0; return; end
  [~, u] = lu (a);
  if any (diag (u) == 0), c = 0; return; end
  c = 1 / (norm (a, 1) * norm (a \ eye (rows (a)), 1));
end

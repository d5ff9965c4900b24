function counts = run_count (x, n, dim)
  if nargin < 2, print_usage (); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isscalar (n) && n == fix (n) && n > 0), error ("run_count: N must be a positive integer"); end
  if ! (isscalar (dim) && dim == fix (dim) && dim > 0), error ("run_count: DIM must be an integer and a valid dimension"); end
  if dim == 2 && ndims (x) == 2, counts = run_count (x.', n, 1).'; return; end
  counts = zeros (n, columns (x));
  for k = 1:columns (x)
    % Upward runs: they end where the next element is smaller.
    lengths = diff ([0; find(diff (x(:,k)) < 0)(:); rows(x)]);
    counts(:,k) = accumarray (min (lengths, n), 1, [n, 1]);
  end
end

function k = commutation_matrix (m, n)
  if nargin < 1, print_usage (); end
  if nargin < 2, n = m; end
  if ! (isscalar (m) && m > 0 && m == round (m)), error ("commutation_matrix: M must be a positive integer"); end
  if ! (isscalar (n) && n > 0 && n == round (n)), error ("commutation_matrix: N must be a positive integer"); end
  k = zeros (m * n);
  at = reshape (1:m*n, m, n).';
  k(sub2ind (size (k), (1:m*n).', at(:))) = 1;
end

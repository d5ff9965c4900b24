function d = duplication_matrix (n)
  if nargin != 1, print_usage (); end
  if ! (isscalar (n) && n > 0 && n == round (n)), error ("duplication_matrix: N must be a positive integer"); end
  d = zeros (n * n, n * (n + 1) / 2);
  k = 0;
  for j = 1:n
    for i = j:n
      k++;
      d((j - 1) * n + i,k) = 1;
      d((i - 1) * n + j,k) = 1;
    end
  end
end

% Lloyd's algorithm, deterministic start
X = [1 1; 1.5 2; 3 4; 5 7; 3.5 5; 4.5 5; 3.5 4.5; 1.2 0.8; 5.5 6.5; 0.5 1.5];
K = 2; C = X([1 4], :);
lab = zeros (rows (X), 1);
for it = 1:20
  D = zeros (rows (X), K);
  for k = 1:K
    D(:, k) = sum (bsxfun (@minus, X, C(k, :)).^2, 2);
  end
  [d, new] = min (D, [], 2);
  if isequal (new, lab), break; end
  lab = new;
  for k = 1:K, C(k, :) = mean (X(lab == k, :), 1); end
end
it
lab'
C
inertia = sum (d)
arrayfun (@(k) nnz (lab == k), 1:K)
S = accumarray (lab, X(:,1), [], @mean)
groups = arrayfun (@(k) X(lab == k, :), (1:K)', 'UniformOutput', false)
cellfun (@rows, groups)
cellfun ('isempty', groups)
cellfun (@(g) max (g(:)), groups, 'UniformOutput', false)

function r = ranks (x, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2, dim = find (size (x) > 1, 1); end
  if isempty (dim), dim = 1; end
  if dim == 2, r = ranks (x.', 1).'; return; end
  r = zeros (size (x));
  for j = 1:columns (x)
    for i = 1:rows (x)
      less = sum (x(:,j) < x(i,j)); equal = sum (x(:,j) == x(i,j));
      r(i,j) = less + (equal + 1) / 2;
    end
  end
end

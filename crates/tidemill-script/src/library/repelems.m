function y = repelems (x, r)
  if nargin != 2, print_usage (); end
  if rows (r) != 2, error ("repelems: R must be a matrix with two rows"); end
  if any (r(:) != fix (r(:))), error ("repelems: R must be a matrix of integers"); end
  if any (r(2,:) < 0), error ("repelems: second row must contain non-negative numbers"); end
  if any (r(1,:) < 1 | r(1,:) > numel (x)), error ("repelems: index out of range"); end
  y = x(repelem (r(1,:), r(2,:)));
  y = reshape (y, 1, numel (y));
end

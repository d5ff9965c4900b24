function a = rectint (p, q)
  % Rows are places and then extents, in as many dimensions.
  if nargin != 2, print_usage (); end
  if ndims (p) != 2 || ndims (q) != 2 || columns (p) != columns (q)
    error ("rectint: A and B must have same number of columns");
  end
  if mod (columns (p), 2), error ("rectint: number of columns of A and B must be a multiple of two"); end
  n = columns (p) / 2;
  a = 1;
  for k = 1:n
    side = min (p(:,k) + p(:,n+k), (q(:,k) + q(:,n+k))') - max (p(:,k), q(:,k)');
    a = a .* max (side, 0);
  end
end

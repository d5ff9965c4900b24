function b = bincoeff (n, k)
  if nargin != 2, print_usage (); end
  [n, k] = deal (n + zeros (size (k)), k + zeros (size (n)));
  b = ones (size (n));
  unknown = k < 0 | k != fix (k) | isnan (n);
  b(unknown) = NaN;
  left = find (! unknown & k > 0);
  for j = 1:max ([0; k(left)(:)])
    left = left(k(left) >= j);
    b(left) .*= (n(left) - k(left) + j) / j;
  end
  whole = n == fix (n);
  b(whole) = round (b(whole));
end

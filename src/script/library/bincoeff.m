function b = bincoeff (n, k)
  if nargin != 2, print_usage (); end
  [n, k] = deal (n + zeros (size (k)), k + zeros (size (n)));
  b = zeros (size (n));
  for i = 1:numel (n)
    if k(i) < 0 || k(i) != fix (k(i)) || isnan (n(i)), b(i) = NaN; continue; end
    b(i) = prod ((n(i) - k(i) + 1:n(i)) ./ (1:k(i)));
    if n(i) == fix (n(i)), b(i) = round (b(i)); end
  end
end

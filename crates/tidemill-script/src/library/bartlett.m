function w = bartlett (m)
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("bartlett: M must be a positive integer"); end
  if m == 1, w = 1; return; end
  n = m - 1;
  k = (0:n)';
  w = 1 - abs (2 * k / n - 1);
end

function w = hanning (m)
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("hanning: M must be a positive integer"); end
  if m == 1, w = 1; return; end
  w = 0.5 - 0.5 * cos (2 * pi * (1:m)' / (m + 1));
end

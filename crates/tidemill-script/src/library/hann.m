function w = hann (m, opt)
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("hann: M must be a positive integer"); end
  if m == 1, w = 1; return; end
  n = m - 1 + (nargin > 1 && strcmp (opt, "periodic"));
  w = 0.5 - 0.5 * cos (2 * pi * (0:m-1)' / n);
end

function w = blackman (m, opt)
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("blackman: M must be a positive integer"); end
  if nargin > 1 && ! any (strcmp (opt, {"periodic", "symmetric"}))
    error ("blackman: window type must be either \"periodic\" or \"symmetric\"");
  end
  if m == 1, w = 1; return; end
  k = (0:m-1)' / (m - 1 + (nargin > 1 && strcmp (opt, "periodic")));
  w = 0.42 - 0.5 * cos (2 * pi * k) + 0.08 * cos (4 * pi * k);
end

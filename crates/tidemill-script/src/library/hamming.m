function w = hamming (m, opt)
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("hamming: M must be a positive integer"); end
  if nargin > 1 && ! any (strcmp (opt, {"periodic", "symmetric"}))
    error ("hamming: window type must be either \"periodic\" or \"symmetric\"");
  end
  if m == 1, w = 1; return; end
  n = m - 1 + (nargin > 1 && strcmp (opt, "periodic"));
  w = 0.54 - 0.46 * cos (2 * pi * (0:m-1)' / n);
end

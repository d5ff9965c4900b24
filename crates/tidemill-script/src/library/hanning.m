function w = hanning (m, opt)
  if nargin < 2, opt = "symmetric"; end
  if ! (isscalar (m) && m == fix (m) && m > 0), error ("hanning: M must be a positive integer"); end
  if ! any (strcmp (opt, {"periodic", "symmetric"})), error ("hanning: window type must be either \"periodic\" or \"symmetric\""); end
  if m == 1, w = 1; return; end
  % One that is symmetric leaves out the zeros at its ends.
  if strcmp (opt, "periodic"), k = (0:m-1)' / m; else, k = (1:m)' / (m + 1); end
  w = 0.5 - 0.5 * cos (2 * pi * k);
end

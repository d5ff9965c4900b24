function c = fftconv (x, y, n)
  if nargin < 2, print_usage (); end
  if ! (isvector (x) && isvector (y)), error ("fftconv: both A and B must be vectors"); end
  m = numel (x) + numel (y) - 1;
  if nargin < 3, n = m; end
  full = ifft (fft (x(:), max (n, m)) .* fft (y(:), max (n, m)));
  c = full(1:m);
  if isreal (x) && isreal (y), c = real (c); end
  if isrow (x), c = c.'; end
end

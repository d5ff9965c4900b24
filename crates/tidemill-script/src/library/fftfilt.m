function y = fftfilt (b, x)
  if nargin < 2, print_usage (); end
  if ! isvector (b), error ("fftfilt: B must be a vector"); end
  if ndims (x) > 2, error ("fftfilt: X must be a 1-D or 2-D array"); end
  n = numel (x) + numel (b) - 1;
  y = ifft (fft (b(:), n) .* fft (x(:), n));
  y = reshape (y(1:numel (x)), size (x));
  if isreal (b) && isreal (x), y = real (y); end
end

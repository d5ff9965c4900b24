function y = fftfilt (b, x)
  if nargin < 2, print_usage (); end
  n = numel (x) + numel (b) - 1;
  y = ifft (fft (b(:), n) .* fft (x(:), n));
  y = reshape (y(1:numel (x)), size (x));
  if isreal (b) && isreal (x), y = real (y); end
end

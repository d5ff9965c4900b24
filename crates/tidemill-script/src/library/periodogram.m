function [p, w] = periodogram (x)
  if nargin < 1, print_usage (); end
  if ! isnumeric (x) || ! isvector (x), error ("periodogram: X must be a real or complex vector"); end
  x = x(:);
  count = numel (x);
  n = max (256, 2 ^ nextpow2 (count));
  p = abs (fft (x, n)) .^ 2 / count / (2 * pi);
  half = floor (n / 2) + 1;
  p = p(1:half);
  last = half - (mod (n, 2) == 0);
  p(2:last) *= 2;
  w = 2 * pi * (0:half-1)' / n;
end

function [p, w] = periodogram (x)
  if nargin < 1, print_usage (); end
  x = x(:);
  n = numel (x);
  p = abs (fft (x)) .^ 2 / n / (2 * pi);
  half = floor (n / 2) + 1;
  p = p(1:half);
  last = half - (mod (n, 2) == 0);
  p(2:last) *= 2;
  w = 2 * pi * (0:half-1)' / n;
end

function [h, w] = freqz (b, a, n)
  if nargin < 2 || isempty (a), a = 1; end
  if nargin < 3 || isempty (n), n = 512; end
  if isscalar (n), w = pi * (0:n-1)' / n; else, w = n(:); end
  z = exp (-1i * w);
  h = polyval (fliplr (b(:).'), z) ./ polyval (fliplr (a(:).'), z);
end

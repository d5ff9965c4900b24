function y = detrend (x, p)
  if nargin < 1, print_usage (); end
  if ! isnumeric (x) || ndims (x) > 2, error ("detrend: X must be a numeric vector or matrix"); end
  if nargin < 2 || strcmp (p, "linear"), p = 1; elseif strcmp (p, "constant"), p = 0; end
  if ! (isnumeric (p) && isscalar (p) && p == fix (p) && p >= 0), error ("detrend: P must be \"constant\", \"linear\", or a positive integer"); end
  turned = isrow (x);
  if turned, x = x.'; end
  n = rows (x);
  b = ((1:n)' / n) .^ (0:p);
  y = x - b * (b \ x);
  if turned, y = y.'; end
end

function y = psi (k, x)
  % The derivative of the logarithm of gamma, or its K-th one.
  if nargin < 1 || nargin > 2, print_usage (); end
  if nargin == 1, [k, x] = deal (0, k); end
  if ! (isnumeric (k) && isscalar (k)), error ("psi: K must be an integer"); end
  k = fix (k);
  if k < 0, error ("psi: K must be non-negative"); end
  if ! isfloat (x), error ("psi: Z must be a floating point"); end
  if k == 0, y = digamma (x); return, end
  if ! isreal (x), error ("psi: Z must be real value for polygamma (K > 0)"); end
  if any (x(:) < 0), error ("psi: Z must be non-negative for polygamma (K > 0)"); end
  y = cast ((-1) ^ (k + 1) * gamma (k + 1) * zeta_from (k + 1, double (x)), underlyingType (x));
  y(x == 0) = NaN;
end

% Raised by 10 where it is less by its recurrence, then its asymptotic series.
function y = digamma (x)
  y = zeros (size (x), underlyingType (x));
  negative = real (x) < 0 & x != fix (x);
  y(negative) = -pi ./ tan (pi * x(negative));
  x(negative) = 1 - x(negative);
  pole = real (x) <= 0 & x == fix (real (x));
  x(pole) = 1;
  low = real (x) < 10;
  from = x(low);
  passed = 1 ./ from;
  for k = 1:9, passed += 1 ./ (from + k); end
  y(low) -= passed;
  x(low) = from + 10;
  z = 1 ./ x .^ 2;
  y += log (x) - 0.5 ./ x - z .* (1/12 - z .* (1/120 - z .* (1/252 - z .* (1/240 - z .* (1/132 - z .* (691/32760 - z / 12))))));
  y(pole) = -Inf;
end

% The sum of 1 / (x + j) ^ s for j from 0 on: its first terms, and Euler and Maclaurin's formula for the others.
function y = zeta_from (s, x)
  y = zeros (size (x));
  for j = 0:14 + s, y += (x + j) .^ -s; end
  x += 15 + s;
  y += x .^ (1 - s) / (s - 1) + x .^ -s / 2;
  share = s * x .^ (-s - 1) / 2;
  bernoulli = [1/6, -1/30, 1/42, -1/30, 5/66, -691/2730, 7/6];
  for j = 1:numel (bernoulli)
    y += bernoulli(j) * share;
    share = share * (s + 2*j - 1) * (s + 2*j) ./ (x .^ 2 * (2*j + 1) * (2*j + 2));
  end
  y(isinf (x)) = 0;
end

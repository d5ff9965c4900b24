function y = psi (x)
  % The derivative of the logarithm of gamma: raised to at least 10 by its recurrence, then its asymptotic series.
  if nargin != 1, print_usage (); end
  y = zeros (size (x));
  negative = x < 0 & x != fix (x);
  y(negative) = -pi ./ tan (pi * x(negative));
  x(negative) = 1 - x(negative);
  pole = x <= 0;
  x(pole) = 1;
  for k = 1:10
    low = x < 10;
    y(low) -= 1 ./ x(low);
    x(low)++;
  end
  z = 1 ./ x .^ 2;
  y += log (x) - 0.5 ./ x - z .* (1/12 - z .* (1/120 - z .* (1/252 - z .* (1/240 - z .* (1/132 - z .* (691/32760 - z / 12))))));
  y(pole) = -Inf;
end

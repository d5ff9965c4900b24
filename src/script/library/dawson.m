function y = dawson (x)
  % G. B. Rybicki's sum: exact to about 1e-15.
  if nargin != 1, print_usage (); end
  if ! isreal (x), error ("dawson: X must be real"); end
  class_ = class (x);
  x = double (x);
  h = 0.2;
  n0 = 2 * round (x / (2 * h));
  off = x - n0 * h;
  y = zeros (size (x));
  for n = -41:2:41
    y += exp (-(off - n * h) .^ 2) ./ (n + n0);
  end
  y /= sqrt (pi);
  small = abs (x) < 0.2;
  s = x(small) .^ 2;
  y(small) = x(small) .* (1 - 2/3 * s .* (1 - 2/5 * s .* (1 - 2/7 * s .* (1 - 2/9 * s .* (1 - 2/11 * s .* (1 - 2/13 * s .* (1 - 2/15 * s)))))));
  y(isinf (x)) = 0;
  if strcmp (class_, "single"), y = single (y); end
end

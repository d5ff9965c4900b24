function varargout = balance (a, option)
  % Parlett and Reinsch: first eigenvalues that stand alone are moved to the ends, then rows and columns of the rest are
  % scaled by powers of 2 until their norms are near each other.
  if nargin < 1 || nargin > 2, print_usage (); end
  if ! isnumeric (a), error ("balance: A must be a numeric matrix"); end
  if nargin == 2 && ! ischar (option), error ("balance: balancing of two matrices is not supported"); end
  if ndims (a) != 2 || rows (a) != columns (a), error ("balance: A must be a square matrix"); end
  if ! isfloat (a), a = double (a); end
  [permutes, scales] = deal (true);
  if nargin == 2
    switch option
      case {"noperm", "S"}, permutes = false;
      case {"noscal", "P"}, scales = false;
      otherwise, error ('balance: unknown option "%s"', option);
    end
  end
  n = rows (a);
  first = 1;
  last = n;
  order = 1:n;
  if permutes, [order, first, last] = alone (a); end
  a = a(order,order);
  scale = ones (n, 1);
  if scales, [a, scale] = scaled (a, first, last); end
  if nargout < 2
    varargout = {a};
  elseif nargout == 2
    t = zeros (n, underlyingType (a));
    t(sub2ind ([n, n], order, 1:n)) = scale;
    varargout = {t, a};
  else
    varargout = {scale, order(:), a};
  end
end
function [order, first, last] = alone (a)
  n = rows (a);
  order = 1:n;
  first = 1;
  last = n;
  other = a != 0;
  other(1:n+1:end) = false;
  % A row without others goes to the end, then a column without others to the beginning.
  k = last;
  while k >= 1 && last > 1
    if any (other(order(k),order(1:last))), k--; continue; end
    order([k, last]) = order([last, k]);
    last--;
    k = last;
  end
  k = first;
  while k <= last && first < last
    if any (other(order(first:last),order(k))), k++; continue; end
    order([k, first]) = order([first, k]);
    first++;
    k = first;
  end
end
function [a, scale] = scaled (a, first, last)
  scale = ones (rows (a), 1, underlyingType (a));
  inner = first:last;
  greatest = realmax (underlyingType (a)) / 4;
  least = 1 / greatest;
  goes_on = first < last;
  while goes_on
    goes_on = false;
    for k = inner
      c = norm (a(inner,k));
      r = norm (a(k,inner));
      if c == 0 || r == 0, continue; end
      % How far the power of 2 may go is bounded by the largest elements, too.
      high = max (abs (a(1:last,k)));
      low = max (abs (a(k,first:end)));
      if ! isfinite (c + r), error ("balance: A must have finite elements"); end
      [f, total] = deal (1, c + r);
      while c < r / 2 && max ([f, c, high]) < greatest && min ([r, low]) > least
        f *= 2; c *= 2; high *= 2; r /= 2; low /= 2;
      end
      while c / 2 >= r && max (r, low) < greatest && min ([f, c, high]) > least
        f /= 2; c /= 2; high /= 2; r *= 2; low *= 2;
      end
      if c + r >= 0.95 * total, continue; end
      scale(k) *= f;
      a(k,first:end) /= f;
      a(1:last,k) *= f;
      goes_on = true;
    end
  end
end

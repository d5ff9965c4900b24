function y = cplxpair (z, tol, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (tol), tol = 100 * eps; end
  if nargin > 2
    if ! (isscalar (dim) && dim == fix (dim) && dim > 0 && dim <= ndims (z)), error ("cplxpair: invalid dimension DIM"); end
    order = [dim, 1:dim-1, dim+1:ndims(z)];
    turned = permute (z, order);
    y = turned;
    for j = 1:prod (size (turned)(2:end)), y(:,j) = cplxpair (turned(:,j), tol); end
    y = ipermute (y, order);
    return
  end
  if isempty (z), y = zeros (size (z)); return; end
  if ! isvector (z)
    y = z;
    for j = 1:columns (z), y(:,j) = cplxpair (z(:,j), tol); end
    return;
  end
  v = z(:);
  is_real = abs (imag (v)) <= tol * abs (v);
  reals = sort (real (v(is_real)));
  v = v(! is_real);
  if mod (numel (v), 2), error ("cplxpair: could not pair all complex numbers"); end
  [~, order] = sort (real (v)); v = v(order);
  [a, b] = deal (v(1:2:end), v(2:2:end));
  apart = real (a(2:end)) - real (b(1:end-1)) > tol * max (abs (a(2:end)), abs (a(1:end-1)));
  if all (abs (b - conj (a)) <= tol * abs (a)) && all (apart)
    % Partners stand beside each other, and nothing else is near.
    below = complex (real (a), -abs (imag (a)));
    pairs = reshape ([below, conj(below)].', [], 1);
    v = [];
  else
    pairs = zeros (0, 1);
  end
  while ! isempty (v)
    distance = abs (v(2:end) - conj (v(1)));
    [least, k] = min (distance);
    if least > tol * abs (v(1)), error ("cplxpair: could not pair all complex numbers"); end
    below = complex (real (v(1)), -abs (imag (v(1))));
    pairs(end+1:end+2,1) = [below; conj(below)];
    v([1, k+1]) = [];
  end
  y = [pairs; reals];
  if isrow (z), y = y.'; end
end

function z = interpft (x, n, dim)
  % The spectrum gets zeros in its middle; of fewer points than X has, a part is kept.
  if nargin < 2, print_usage (); end
  if ! (isscalar (n) && n == fix (n)), error ("interpft: N must be a scalar integer"); end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if ! (isscalar (dim) && dim == fix (dim) && dim >= 1 && dim <= ndims (x)), error ("interpft: invalid dimension DIM"); end
  order = [dim, 1:dim-1, dim+1:ndims(x)];
  turned = size (permute (x, order));
  x = reshape (permute (x, order), turned(1), []);
  m = rows (x);
  inc = max (1, ceil (m / n));
  y = fft (x) / m;
  k = floor (m / 2);
  long = inc * n;
  if long > m
    y = [y(1:k,:); zeros(long - m, columns (y)); y(k+1:m,:)];
    if mod (m, 2) == 0
      y(long - m + k + 1,:) /= 2;
      y(k + 1,:) = y(long - m + k + 1,:);
    else
      y = [y(1:k,:); y(long - m + k + 1,:); y(k+1:long - m + k,:); y(long - m + k + 2:end,:)];
    end
  end
  z = long * ifft (y);
  z = z(1:inc:long,:);
  if isreal (x), z = real (z); end
  turned(1) = n;
  z = ipermute (reshape (z, turned), order);
end

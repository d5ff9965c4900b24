function d = del2 (m, varargin)
  % Second differences along each dimension over the squares of distances; outermost ones continue their neighbours'.
  if nargin < 1, print_usage (); end
  n = ndims (m);
  sizes = size (m);
  h = cell (1, n);
  if nargin == 1
    h(:) = {1};
  elseif nargin == 2
    h(:) = varargin(1);
    if isrow (m), h{1} = 1; end
  elseif nargin == n + 1
    h = varargin;
    % The first distance is that between columns.
    h([1, 2]) = h([2, 1]);
  else
    print_usage ();
  end
  for k = 1:n
    if ! isscalar (h{k}) && ! isvector (h{k}), error ("del2: spacing element %d must be a scalar or vector", k + (k < 3) * (3 - 2 * k)); end
    if ! isscalar (h{k}) && numel (h{k}) != sizes(k)
      error ("del2: number of elements in spacing vector %d does not match dimension %d of M", k, k);
    end
  end
  d = zeros (sizes);
  for k = 1:n
    len = sizes(k);
    if len < 3, continue; end
    order = [k, 1:k-1, k+1:n];
    x = reshape (permute (m, order), len, []);
    if isscalar (h{k})
      e = second (x, h{k} * ones (len - 1, 1));
    else
      e = second (x, diff (h{k}(:)));
    end
    d += ipermute (reshape (e, sizes(order)), order);
  end
  d /= 2 * n;
end
function e = second (x, h)
  len = rows (x);
  e = zeros (size (x));
  before = h(1:end-1);
  after = h(2:end);
  slopes = diff (x, 1, 1) ./ h;
  e(2:end-1,:) = 2 * (slopes(2:end,:) - slopes(1:end-1,:)) ./ (before + after);
  if len > 3
    e(1,:) = e(2,:) - (e(3,:) - e(2,:)) * h(1) / h(2);
    e(end,:) = e(end-1,:) + (e(end-1,:) - e(end-2,:)) * h(end) / h(end-1);
  else
    e(1,:) = e(2,:);
    e(end,:) = e(2,:);
  end
end

function vi = interpn (varargin)
  % Multilinear, nearest, or by splines: interpn (x1, ..., xn, v, y1, ..., yn, method, extrapolation), without grids, or refined M times.
  if nargin < 1, print_usage (); end
  method = "linear";
  outside = [];
  k = find (cellfun (@ischar, varargin), 1);
  if ! isempty (k)
    method = lower (varargin{k});
    if numel (varargin) > k, outside = varargin{k+1}; end
    varargin(k:end) = [];
  end
  if ! any (strcmp (method, {"linear", "nearest", "spline"})), error ("interpn: the methods are linear, nearest and spline"); end
  count = numel (varargin);
  v = varargin{1};
  n = ndims (v);
  if isvector (v) && (count != n + 1 || n == 2 && count == 3 && isvector (v)), n = 1; end
  if count <= 2 && ! (isvector (v) && count == 2 && ! isscalar (varargin{2}))
    m = 1;
    if count == 2, m = varargin{2}; end
    if ! (isscalar (m) && isreal (m) && m == fix (m) && m >= 0), print_usage (); end
    if ! isvector (v), n = ndims (v); end
    x = cell (1, n); y = cell (1, n);
    for d = 1:n
      long = size (v, d);
      if n == 1, long = numel (v); end
      x{d} = 1:long;
      y{d} = linspace (1, long, (long - 1) * 2 ^ m + 1);
    end
    if n > 1, [y{1:n}] = ndgrid (y{:}); elseif iscolumn (v), y{1} = y{1}.'; end
  elseif count == n + 1 || count == 2
    n = count - 1;
    y = varargin(2:end);
    x = cell (1, n);
    for d = 1:n, x{d} = 1:size (v, d); end
    if n == 1, x{1} = 1:numel (v); end
  elseif mod (count, 2) == 1
    n = (count - 1) / 2;
    v = varargin{n+1};
    x = varargin(1:n);
    y = varargin(n+2:end);
    for d = 1:n
      if ! isvector (x{d})
        part = repmat ({1}, 1, ndims (x{d})); part{d} = ":";
        x{d} = x{d}(part{:});
      end
    end
  else
    error ("interpn: wrong number of arguments");
  end
  if n > 1 && all (cellfun (@isvector, y)) && ! all (cellfun (@(a) isequal (size (a), size (y{1})), y))
    [y{1:n}] = ndgrid (y{:});
  end
  shape = size (y{1});
  for d = 1:n
    if ! isequal (size (y{d}), shape), error ("interpn: incompatible size of argument number %d", n + 1 + d); end
  end
  dims = size (v);
  if n == 1, dims = numel (v); end
  lost = false (shape);
  for d = 1:n
    if numel (x{d}) != dims(d), error ("interpn: dimensional mismatch"); end
    lost |= ! (y{d} >= min (x{d}(:)) & y{d} <= max (x{d}(:)));
  end
  if isempty (outside) && ! strcmp (method, "spline"), outside = NA; end
  if strcmp (method, "spline")
    if any (cellfun (@isempty, y))
      vi = zeros (shape);
    elseif n > 1 && is_grid (y)
      vi = spline_on_grid (x, v, y);
    else
      vi = spline_at (x, v, dims, y, shape);
    end
    if ! isempty (outside), vi(lost) = outside; end
    return
  end
  shares = cell (1, n);
  for d = 1:n, shares{d} = shares_of (x{d}(:), y{d}, method); end
  vi = reshape (sum_of (v(:), dims, shares), shape);
  if isempty (outside), return; end
  if ! isreal (vi), outside = complex (real (outside), real (outside) * isna (outside) + imag (outside)); end
  vi(lost) = outside;
end
function s = shares_of (g, at, method)
  % Which samples along a dimension count for each place, and for how much: a row of each for each neighbour.
  n = numel (g);
  at = at(:).';
  if g(1) > g(end), g = -g; at = -at; end
  [g, order] = sort (g);
  k = reshape (min (max (lookup (g, at), 1), n - 1), 1, []);
  t = (at - g(k).') ./ (g(k+1) - g(k)).';
  if strcmp (method, "nearest"), t = double (t >= 0.5); end
  s.weights = [1 - t; t];
  s.places = reshape (order([k; k + 1]), 2, []);
end
function vi = sum_of (v, dims, shares)
  % Over all neighbours, the first dimension innermost.
  n = numel (dims);
  step = cumprod ([1, dims(1:end-1)]);
  counts = cellfun (@(s) rows (s.weights), shares);
  vi = 0;
  for corner = 0:prod (counts) - 1
    weight = 1;
    place = 1;
    left = corner;
    for d = 1:n
      k = mod (left, counts(d)) + 1;
      left = floor (left / counts(d));
      weight = weight .* shares{d}.weights(k,:);
      place = place + (shares{d}.places(k,:) - 1) * step(d);
    end
    part = weight .* reshape (v(place), 1, []);
    part(weight == 0) = 0;
    vi = vi + part;
  end
end
function yes = is_grid (y)
  % Whether the places are those of `ndgrid`.
  n = numel (y);
  yes = ndims (y{1}) <= n;
  for d = 1:n
    if yes, yes = all ((y{d} == line_of (y{d}, d))(:)); end
  end
end
function g = line_of (y, d)
  % The places along a dimension, at the beginning of the others.
  part = repmat ({1}, 1, ndims (y));
  part{d} = ":";
  g = y(part{:});
end
function v = spline_on_grid (x, v, y)
  % Along one dimension after the other, through all lines of the others at once.
  n = numel (x);
  for d = n:-1:1
    order = [1:d-1, d+1:n, d];
    dims = size (v);
    dims(end+1:n) = 1;
    v = reshape (permute (v, order), [], dims(d));
    g = line_of (y{d}, d)(:).';
    v = spline (x{d}(:), v, g);
    dims(d) = numel (g);
    v = ipermute (reshape (v, dims(order)), order);
  end
end
function vi = spline_at (x, v, dims, y, shape)
  % The samples with their second derivatives along each dimension give the cubics around each place.
  n = numel (x);
  dims = [dims, ones(1, 2 - n)];
  v = reshape (v, dims);
  shares = cell (1, n);
  for d = 1:n
    [g, order] = sort (x{d}(:));
    part = repmat ({":"}, 1, numel (dims)); part{d} = order;
    v = v(part{:});
    v = cat (d, v, second_derivatives (g, v, d));
    shares{d} = spline_shares (g, y{d}(:).');
  end
  vi = reshape (sum_of (v(:), size (v)(1:n), shares), shape);
end
function m = second_derivatives (g, v, d)
  % Of the splines along a dimension, at the samples.
  if any (isnan (v(:))), m = NaN (size (v)); return; end
  n = ndims (v);
  order = [1:d-1, d+1:n, d];
  dims = size (v);
  lines_ = reshape (permute (v, order), [], numel (g));
  pp = spline (g, lines_);
  c = reshape (pp.coefs, rows (lines_), [], 4);
  m = [2 * c(:,:,2), 6 * c(:,end,1) * (g(end) - g(end-1)) + 2 * c(:,end,2)];
  m = ipermute (reshape (m, dims(order)), order);
end
function s = spline_shares (g, at)
  % Which samples and second derivatives count for each place, and for how much.
  n = numel (g);
  k = reshape (min (max (lookup (g, at), 1), n - 1), 1, []);
  h = (g(k+1) - g(k)).';
  b = (at - g(k).') ./ h;
  a = 1 - b;
  s.weights = [a; b; (a .^ 3 - a) .* h .^ 2 / 6; (b .^ 3 - b) .* h .^ 2 / 6];
  s.places = [k; k + 1; n + k; n + k + 1];
end

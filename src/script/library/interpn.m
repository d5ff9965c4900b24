function vi = interpn (varargin)
  % Multilinear, or nearest: interpn (x1, ..., xn, v, y1, ..., yn, method, extrapolation), without grids, or refined M times.
  if nargin < 1, print_usage (); end
  method = "linear";
  outside = NA;
  k = find (cellfun (@ischar, varargin), 1);
  if ! isempty (k)
    method = lower (varargin{k});
    if numel (varargin) > k, outside = varargin{k+1}; end
    varargin(k:end) = [];
  end
  if ! any (strcmp (method, {"linear", "nearest"})), error ("interpn: the methods are linear and nearest"); end
  count = numel (varargin);
  v = varargin{1};
  n = ndims (v);
  if isvector (v) && (count != n + 1 || n == 2 && count == 3 && isvector (v)), n = 1; end
  if count <= 2 && ! (isvector (v) && count == 2 && ! isscalar (varargin{2}))
    n = ndims (v);
    m = 1;
    if count == 2, m = varargin{2}; end
    x = cell (1, n); y = cell (1, n);
    for d = 1:n
      x{d} = 1:size (v, d);
      y{d} = linspace (1, size (v, d), (size (v, d) - 1) * 2 ^ m + 1);
    end
    [y{1:n}] = ndgrid (y{:});
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
  lost = false (shape);
  dims = size (v);
  if n == 1, dims = numel (v); end
  base = zeros (shape); step = cumprod ([1, dims(1:end-1)]);
  at = cell (1, n); share = cell (1, n);
  for d = 1:n
    g = x{d}(:);
    if numel (g) != dims(d), error ("interpn: dimensional mismatch"); end
    lost |= ! (y{d} >= g(1) & y{d} <= g(end));
    k = min (max (lookup (g, y{d}), 1), numel (g) - 1);
    at{d} = reshape (k, shape);
    share{d} = (y{d} - reshape (g(k), shape)) ./ reshape (g(k+1) - g(k), shape);
    if strcmp (method, "nearest"), share{d} = double (share{d} >= 0.5); end
    share{d}(lost) = 0;
    base += (at{d} - 1) * step(d);
  end
  vi = zeros (shape);
  for corner = 0:2^n-1
    weight = ones (shape);
    place = base + 1;
    for d = 1:n
      if bitget (corner, d), weight .*= share{d}; place += step(d); else, weight .*= 1 - share{d}; end
    end
    part = weight .* reshape (v(place), shape);
    part(weight == 0) = 0;
    vi += part;
  end
  vi(lost) = outside;
end

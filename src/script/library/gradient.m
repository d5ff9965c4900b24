function varargout = gradient (m, varargin)
  if nargin < 1, print_usage (); end
  if is_function_handle (m)
    x = varargin{1};
    h = 1e-5;
    varargout{1} = (m (x + h / 2) - m (x - h / 2)) / h;
    return
  end
  if isvector (m), dims = find (size (m) != 1, 1); else, dims = [2, 1, 3:ndims(m)]; end
  if isempty (dims), dims = 1; end
  for k = 1:max (nargout, 1)
    d = dims(k);
    if numel (varargin) >= k, h = varargin{k}; elseif numel (varargin) == 1, h = varargin{1}; else, h = 1; end
    n = size (m, d);
    if isscalar (h), h = h * (0:n-1); end
    if n < 2, varargout{k} = zeros (size (m)); continue; end
    at = repmat ({':'}, 1, ndims (m));
    pick = @(list) setfield (at, {d}, {list});
    shape = ones (1, ndims (m));
    shape(d) = n - 2;
    h = h(:);
    inner = (m(pick (3:n){:}) - m(pick (1:n-2){:})) ./ reshape (h(3:n) - h(1:n-2), shape);
    first = (m(pick (2){:}) - m(pick (1){:})) / (h(2) - h(1));
    last = (m(pick (n){:}) - m(pick (n-1){:})) / (h(n) - h(n-1));
    varargout{k} = cat (d, first, inner, last);
  end
end

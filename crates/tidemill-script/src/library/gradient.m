function varargout = gradient (m, varargin)
  if nargin < 1, print_usage (); end
  if ischar (m), m = str2func (m); end
  if ! (isnumeric (m) || is_function_handle (m)), error ("gradient: first input must be an array or a function"); end
  if is_function_handle (m)
    if nargin < 2, print_usage (); end
    varargout = of_function (m, varargin{1}, varargin(2:end), max (nargout, 1));
    return
  end
  if isvector (m), dims = find (size (m) != 1, 1); else, dims = [2, 1, 3:ndims(m)]; end
  if isempty (dims), dims = 1; end
  for k = 1:max (nargout, 1)
    if isvector (m) && k > 1, varargout{k} = zeros (size (m)); continue; end
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
% Central differences at points: the columns of a matrix are the arguments.
function parts = of_function (fcn, points, steps, n)
  if isvector (points), points = {points}; else, points = num2cell (points, 1); end
  if isempty (steps), steps = {1}; end
  if numel (steps) == 1, steps = num2cell (steps{1}(:).'); end
  if numel (steps) == 1, steps = repmat (steps, 1, numel (points)); end
  parts = cell (1, n);
  for k = 1:n
    [before, after] = deal (points);
    before{k} -= steps{k};
    after{k} += steps{k};
    parts{k} = (fcn (after{:}) - fcn (before{:})) ./ (2 * steps{k});
  end
end

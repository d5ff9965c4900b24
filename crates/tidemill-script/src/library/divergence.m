function d = divergence (varargin)
  % Of a field in the plane or in space, on a grid of its own or of steps of 1.
  switch nargin
    case 2, d = part (varargin{1}, 2, []) + part (varargin{2}, 1, []);
    case 3, d = part (varargin{1}, 2, []) + part (varargin{2}, 1, []) + part (varargin{3}, 3, []);
    case 4, d = part (varargin{3}, 2, varargin{1}) + part (varargin{4}, 1, varargin{2});
    case 6, d = part (varargin{4}, 2, varargin{1}) + part (varargin{5}, 1, varargin{2}) + part (varargin{6}, 3, varargin{3});
    otherwise, print_usage ();
  end
end
function g = part (f, dim, x)
  if isempty (x), x = 1:size (f, dim); end
  if ! isvector (x)
    at = repmat ({1}, 1, ndims (x));
    at{dim} = ":";
    x = x(at{:});
  end
  steps = repmat ({1}, 1, ndims (f));
  k = dim;
  if dim < 3, k = 3 - dim; end
  steps{k} = x(:);
  outputs = cell (1, ndims (f));
  [outputs{:}] = gradient (f, steps{:});
  g = outputs{k};
end

function varargout = in_parts (f, varargin)
  % What F makes of columns of one size: of so many elements at a time that all of them stay in the host's cache.
  shape = size (varargin{1});
  varargin = cellfun (@(x) gather (x)(:), varargin, "UniformOutput", false);
  long = 4096;
  count = max (1, ceil (prod (shape) / long));
  made = cell (count, max (nargout, 1));
  for k = 1:count
    at = (k - 1) * long + 1:min (k * long, prod (shape));
    parts = cellfun (@(x) x(at), varargin, "UniformOutput", false);
    [made{k,:}] = f (parts{:});
  end
  varargout = cell (1, columns (made));
  for n = 1:columns (made), varargout{n} = reshape (vertcat (made{:,n}), shape); end
end

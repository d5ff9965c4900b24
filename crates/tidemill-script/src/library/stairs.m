function [xs, ys] = stairs (varargin)
  % With two outputs the corners; otherwise a plot, which is not drawn.
  if nargin < 1, print_usage (); end
  if nargout < 2
    if nargout == 0, plot (varargin{:}); else, xs = plot (varargin{:}); end
    return
  end
  if nargin == 1 || ischar (varargin{2})
    y = varargin{1};
    if isvector (y), y = y(:); end
    x = (1:rows (y)).';
  else
    [x, y] = varargin{1:2};
    if isvector (x), x = x(:); end
    if isvector (y), y = y(:); end
  end
  x = repmat (x, 1, columns (y) / columns (x));
  n = rows (y);
  xs = x(ceil ((2:2*n) / 2),:);
  ys = y(ceil ((1:2*n-1) / 2),:);
end

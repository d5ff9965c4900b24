function varargout = splitapply (fcn, varargin)
  % Of vectors, the elements of each group; of matrices, their rows.
  if nargin < 3, print_usage (); end
  g = varargin{end};
  data = varargin(1:end-1);
  n = max (g(:));
  out = cell (n, max (nargout, 1));
  [sorted, order] = sort (g(:));
  last = lookup (sorted(! isnan (sorted)), 1:n);
  first = [0, last(1:end-1)] + 1;
  for k = 1:n
    part = cell (size (data));
    at = order(first(k):last(k));
    for d = 1:numel (data)
      if isvector (data{d}), part{d} = data{d}(at); else, part{d} = data{d}(at,:); end
    end
    [out{k,:}] = fcn (part{:});
  end
  for d = 1:columns (out), varargout{d} = vertcat (out{:,d}); end
  if isrow (g) && columns (varargout{1}) == 1
    for d = 1:columns (out), varargout{d} = varargout{d}.'; end
  end
end

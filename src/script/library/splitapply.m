function varargout = splitapply (fcn, varargin)
  % Of vectors, the elements of each group; of matrices, their rows.
  if nargin < 3, print_usage (); end
  g = varargin{end};
  data = varargin(1:end-1);
  n = max (g(:));
  out = cell (n, max (nargout, 1));
  for k = 1:n
    part = cell (size (data));
    for d = 1:numel (data)
      if isvector (data{d}), part{d} = data{d}(g == k); else, part{d} = data{d}(g == k,:); end
    end
    [out{k,:}] = fcn (part{:});
  end
  for d = 1:columns (out), varargout{d} = vertcat (out{:,d}); end
  if isrow (g) && columns (varargout{1}) == 1
    for d = 1:columns (out), varargout{d} = varargout{d}.'; end
  end
end

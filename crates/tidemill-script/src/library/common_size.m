function [err, varargout] = common_size (varargin)
  if nargin < 2, error ("common_size: only makes sense if nargin >= 2"); end
  single = cellfun (@isscalar, varargin);
  err = 0;
  varargout = varargin;
  if all (single), return; end
  like = size (varargin{find (! single, 1)});
  fits = cellfun (@(x) isequal (size (x), like), varargin);
  if any (! fits & ! single), err = 1; return; end
  for k = find (single), varargout{k} = repmat (varargin{k}, like); end
end

function [y, at] = nanmin (varargin)
  if nargin < 1, print_usage (); end
  if nargout < 2, y = min (varargin{:}); else, [y, at] = min (varargin{:}); end
end

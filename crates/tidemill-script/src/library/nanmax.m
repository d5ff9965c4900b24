function [y, at] = nanmax (varargin)
  if nargin < 1, print_usage (); end
  if nargout < 2, y = max (varargin{:}); else, [y, at] = max (varargin{:}); end
end

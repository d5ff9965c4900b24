function y = peak2peak (x, varargin)
  if nargin < 1, print_usage (); end
  if nargin == 1, y = max (x) - min (x); else, y = max (x, [], varargin{:}) - min (x, [], varargin{:}); end
end

function y = movmin (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun ("min", x, wlen, varargin{:});
end

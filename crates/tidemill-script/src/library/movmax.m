function y = movmax (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun ("max", x, wlen, varargin{:});
end

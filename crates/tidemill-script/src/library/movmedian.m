function y = movmedian (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun (@median, x, wlen, varargin{:});
end

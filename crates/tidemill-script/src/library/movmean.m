function y = movmean (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun ("mean", x, wlen, varargin{:});
end

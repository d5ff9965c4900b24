function y = movmad (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun (@(v) mad (v), x, wlen, varargin{:});
end

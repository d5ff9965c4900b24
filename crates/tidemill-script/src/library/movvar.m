function y = movvar (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  weight = 0;
  if ! isempty (varargin) && ! ischar (varargin{1}), weight = varargin{1}; varargin(1) = []; end
  y = movfun (@(v) var (v, weight), x, wlen, varargin{:});
end

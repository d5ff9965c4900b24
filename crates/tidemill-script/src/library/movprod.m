function y = movprod (x, wlen, varargin)
  if nargin < 2, print_usage (); end
  y = movfun ("prod", x, wlen, varargin{:});
end

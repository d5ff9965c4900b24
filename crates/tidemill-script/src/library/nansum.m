function y = nansum (x, varargin)
  if nargin < 1, print_usage (); end
  x(isnan (x)) = 0;
  y = sum (x, varargin{:});
end

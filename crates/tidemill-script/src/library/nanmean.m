function y = nanmean (x, varargin)
  if nargin < 1, print_usage (); end
  lost = isnan (x);
  x(lost) = 0;
  y = sum (x, varargin{:}) ./ sum (! lost, varargin{:});
end

function y = nanstd (varargin)
  if nargin < 1, print_usage (); end
  y = sqrt (nanvar (varargin{:}));
end

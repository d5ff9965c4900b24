function y = flipdim (varargin)
  if nargin < 1, print_usage (); end
  y = flip (varargin{:});
end

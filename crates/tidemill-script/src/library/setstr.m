function s = setstr (varargin)
  if nargin < 1, print_usage (); end
  s = char (varargin{:});
end

function answer = isequalwithequalnans (varargin)
  if nargin < 2, print_usage (); end
  answer = isequaln (varargin{:});
end

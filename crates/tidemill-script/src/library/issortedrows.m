function answer = issortedrows (x, varargin)
  if nargin < 1, print_usage (); end
  answer = isequal (x, sortrows (x, varargin{:}));
end

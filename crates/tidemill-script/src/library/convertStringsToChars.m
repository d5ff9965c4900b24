function varargout = convertStringsToChars (varargin)
  if nargin < 1, print_usage (); end
  varargout = varargin;
end

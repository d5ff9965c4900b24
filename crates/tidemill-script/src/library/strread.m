function varargout = strread (text, template, varargin)
  if nargin < 1, print_usage (); end
  if ! ischar (text), error ("strread: first argument must be a string"); end
  if nargin < 2 || isempty (template), template = repmat ("%f ", 1, max (nargout, 1)); end
  values = textscan (text, template, varargin{:});
  varargout = values(1:min (max (nargout, 1), numel (values)));
end

function map = colormap (varargin)
  % No figure has a map: it gives the one that it is given, or the one that figures begin with.
  refresh ();
  if nargin > 0 && isscalar (varargin{1}) && isreal (varargin{1}), varargin(1) = []; end
  if isempty (varargin) || ischar (varargin{1}) && strcmp (varargin{1}, "default")
    map = viridis (64);
  elseif ischar (varargin{1})
    map = feval (varargin{1});
  else
    map = varargin{1};
    if ! (isnumeric (map) && columns (map) == 3), error ("colormap: MAP must be a real-valued N x 3 matrix"); end
  end
  if nargout == 0 && ! isempty (varargin), clear map; end
end

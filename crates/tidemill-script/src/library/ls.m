function list = ls (varargin)
  if ! iscellstr (varargin), error ("ls: all arguments must be character strings"); end
  % Letters that say how to list change nothing.
  varargin(strncmp (varargin, "-", 1)) = [];
  if isempty (varargin), varargin = {"."}; end
  names = {};
  for k = 1:numel (varargin)
    if isfolder (varargin{k})
      inside = readdir (varargin{k});
      names = [names; inside(! strncmp (inside, ".", 1))];
    else
      found = glob (varargin{k});
      if isempty (found), error ("ls: '%s' is not there", varargin{k}); end
      names = [names; found(:)];
    end
  end
  if nargout > 0
    list = char (names);
  elseif ! isempty (names)
    disp (list_in_columns (names)(1:end-1));
  end
end

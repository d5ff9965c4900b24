function m = moment (x, p, varargin)
  if nargin < 2, print_usage (); end
  if ! (isnumeric (x) || islogical (x)) || isempty (x), error ("moment: X must be a non-empty numeric matrix or vector"); end
  if ! isnumeric (p) || ! isscalar (p), error ("moment: P must be a numeric scalar"); end
  if nargin == 4 && isnumeric (varargin{1}) && isnumeric (varargin{2}), error ("moment: TYPE must be a string"); end
  type = ""; dim = find (size (x) > 1, 1);
  if isempty (dim), dim = 1; end
  for k = 1:numel (varargin)
    if ischar (varargin{k}), type = varargin{k}; else, dim = varargin{k}; end
  end
  if ! any (type == "r")
    if isinteger (x), x = x - mean (x, dim); else, x = center (x, dim); end
  end
  if any (type == "a"), x = abs (x); end
  m = sum (x .^ p, dim) / size (x, dim);
end

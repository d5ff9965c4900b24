function m = moment (x, p, varargin)
  if nargin < 2, print_usage (); end
  type = ""; dim = find (size (x) > 1, 1);
  if isempty (dim), dim = 1; end
  for k = 1:numel (varargin)
    if ischar (varargin{k}), type = varargin{k}; else, dim = varargin{k}; end
  end
  if ! any (type == "r"), x = x - mean (x, dim); end
  if any (type == "a"), x = abs (x); end
  m = sum (x .^ p, dim) / size (x, dim);
end

function y = rescale (x, varargin)
  % To [0, 1] or to given limits, which may be arrays; from the extremes of X or from those that options name.
  if nargin < 1, print_usage (); end
  if ! (isnumeric (x) || islogical (x)), error ("rescale: A must be a numeric or logical matrix"); end
  if ! isfloat (x), x = double (x); end
  low = 0; high = 1;
  if numel (varargin) > 1 && ! ischar (varargin{1}), [low, high] = varargin{1:2}; varargin(1:2) = []; end
  if ! isnumeric (low), error ("rescale: lower bound L must be numeric"); end
  if ! isnumeric (high), error ("rescale: upper bound U must be numeric"); end
  if any (low(:) > high(:)), error ("rescale: lower bound L must be smaller than upper bound U"); end
  least = min (x(:));
  most = max (x(:));
  if mod (numel (varargin), 2), print_usage (); end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "inputmin", least = varargin{k+1};
      case "inputmax", most = varargin{k+1};
      otherwise, error ("rescale: unknown option '%s'", varargin{k});
    end
  end
  if ! isnumeric (least), error ("rescale: INMIN must be numeric"); end
  if ! isnumeric (most), error ("rescale: INMAX must be numeric"); end
  if isempty (x), y = x; return; end
  x = min (max (x, least), most);
  if isscalar (least) && isscalar (most) && least == most
    y = low + zeros (size (x));
  else
    y = low + (x - least) ./ (most - least) .* (high - low);
  end
end

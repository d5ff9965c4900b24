function y = rescale (x, varargin)
  % To [0, 1] or to given limits, which may be arrays; from the extremes of X or from those that options name.
  if nargin < 1, print_usage (); end
  if ! isfloat (x), x = double (x); end
  low = 0; high = 1;
  if numel (varargin) > 1 && ! ischar (varargin{1}), [low, high] = varargin{1:2}; varargin(1:2) = []; end
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
  if isempty (x), y = x; return; end
  x = min (max (x, least), most);
  if isscalar (least) && isscalar (most) && least == most
    y = low + zeros (size (x));
  else
    y = low + (x - least) ./ (most - least) .* (high - low);
  end
end

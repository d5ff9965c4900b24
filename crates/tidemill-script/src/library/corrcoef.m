function [r, p, low, high] = corrcoef (x, varargin)
  if nargin < 1, print_usage (); end
  alpha = 0.05;
  which_ = "all";
  if ! isempty (varargin) && ! ischar (varargin{1})
    y = varargin{1};
    varargin(1) = [];
    if numel (x) != numel (y), error ("corrcoef: X and Y must be the same size"); end
    x = [x(:), y(:)];
  end
  if mod (numel (varargin), 2), error ("corrcoef: PARAM/VALUE must occur in pairs"); end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "alpha", alpha = varargin{k+1};
      case "rows", which_ = lower (varargin{k+1});
      otherwise, error ("corrcoef: Unknown option \"%s\"", varargin{k});
    end
  end
  if ! (isscalar (alpha) && isreal (alpha) && alpha > 0 && alpha < 1), error ("corrcoef: ALPHA must be between 0 and 1"); end
  if ! any (strcmp (which_, {"all", "complete", "pairwise"})), error ("corrcoef: ROWS must be all, complete or pairwise"); end
  if isempty (x) || isscalar (x), [r, p, low, high] = deal (NaN); return; end
  if isrow (x), x = x.'; end
  if strcmp (which_, "complete"), x = x(! any (isnan (x), 2),:); end
  if strcmp (which_, "pairwise")
    [r, n] = of_pairs (x);
  else
    c = cov (x);
    s = sqrt (diag (c));
    r = c ./ (s * s');
    n = rows (x);
    bad = any (isnan (x), 1);
    r(1:columns (x)+1:end) = 1;
    r(bad,bad) = NaN;
  end
  if nargout < 2, return; end
  own = logical (eye (columns (x)));
  p = betainc (max (1 - r .^ 2, 0), (max (n, 3) - 2) / 2 + 0 * r, 0.5);
  p(n + 0 * r < 3) = NaN;
  p(own) = 1;
  off = sqrt (2) * erfinv (1 - alpha) ./ sqrt (max (n - 3, 0));
  low = tanh (atanh (r) - off);
  high = tanh (atanh (r) + off);
end
function [r, n] = of_pairs (x)
  [r, n] = deal (zeros (columns (x)));
  for i = 1:columns (x)
    for j = 1:columns (x)
      known = ! any (isnan (x(:,[i, j])), 2);
      n(i,j) = sum (known);
      c = cov (x(known,i), x(known,j));
      r(i,j) = c(1,2) / sqrt (c(1,1) * c(2,2));
      if i == j, r(i,j) = 1; end
    end
  end
end

function y = movfun (fcn, x, wlen, varargin)
  % Windows are cut off at the ends, or filled up there as the option Endpoints says.
  if nargin < 3, print_usage (); end
  ends = "shrink";
  chosen = [];
  dim = find (size (x) != 1, 1);
  if isempty (dim), dim = 1; end
  if mod (numel (varargin), 2), print_usage (); end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "endpoints", ends = varargin{k+1};
      case "dim", dim = varargin{k+1};
      case "outdim"
        chosen = double (varargin{k+1});
        if ! (isempty (chosen) || isvector (chosen) && isindex (chosen)), error ("movfun: OUTDIM must be a vector of indices"); end
      case {"nancond", "samplepoints"}
      otherwise, error ("movfun: argument '%s' is not a valid parameter", upper (varargin{k}));
    end
  end
  window_fits (wlen, size (x, dim));
  if isscalar (wlen)
    if mod (wlen, 2), before = (wlen - 1) / 2; after = before; else, before = wlen / 2; after = before - 1; end
  else
    before = wlen(1); after = wlen(2);
  end
  y = zeros (size (x));
  if isempty (x), return; end
  order = [dim, 1:dim-1, dim+1:ndims(x)];
  turned = size (permute (x, order));
  x = gather (reshape (permute (x, order), turned(1), []));
  y = zeros (size (x));
  n = rows (x);
  if ischar (fcn)
    % The name of a function whose values of halves give its value of the whole.
    if before + after >= 64 && strcmp (ends, "shrink") && isfloat (x) && isreal (x)
      y = ipermute (reshape (double (doubled (fcn, x, before, after)), turned), order);
      return
    end
    fcn = str2func (fcn);
  end
  for j = 1:columns (x)
    [whole, values] = whole_windows (fcn, x(:,j), before, after);
    y(whole,j,1) = values;
    parts = 1:n;
    parts(whole) = [];
    for i = parts
      got = fcn (window (x(:,j), i - before:i + after, n, ends));
      y(i,j,1:numel (got)) = got;
    end
  end
  % Several results of a window lie along a dimension of their own.
  if ! isempty (chosen)
    if max (chosen) > size (y, 3)
      error ("movfun: output dimension OUTDIM (%d) is larger than largest available dimension (%d)", max (chosen), size (y, 3));
    end
    y = y(:,:,chosen);
  end
  k = size (y, 3);
  if k > 1 && columns (x) == 1, y = reshape (y, n, k); return; end
  y = ipermute (reshape (y, [turned, k]), [order, numel(order) + 1]);
end
% Values of windows of 1, 2, 4 ... elements, of which those of the windows asked for are put together: time grows with
% the logarithm of their width.
function y = doubled (fcn, x, before, after)
  [n, many] = size (x);
  switch fcn
    case {"mean", "sum"}, joined = @plus; neutral = 0;
    case "prod", joined = @times; neutral = 1;
    case "min", joined = @min; neutral = NaN;
    case "max", joined = @max; neutral = NaN;
  end
  part = [repmat(neutral, before, many); x; repmat(neutral, after, many)];
  y = [];
  left = before + after + 1;
  width = 1;
  first = 0;
  while left > 0
    if mod (left, 2)
      here = part(first+1:first+n,:);
      if isempty (y), y = here; else, y = joined (y, here); end
      first += width;
    end
    left = floor (left / 2);
    if left > 0, part = joined (part(1:end-width,:), part(width+1:end,:)); end
    width *= 2;
  end
  if strcmp (fcn, "mean")
    at = (1:n)';
    y ./= min (at + after, n) - max (at - before, 1) + 1;
  end
end
% The windows that lie within the column, many at once as columns of a matrix, where the function takes them so.
function [at, values] = whole_windows (fcn, x, before, after)
  at = before + 1:rows (x) - after;
  values = zeros (numel (at), 1);
  block = max (2, floor (1e6 / (before + after + 1)));
  for k = 1:block:numel (at)
    here = at(k:min (k + block - 1, numel (at)));
    windows = reshape (x(here + (-before:after)'), [], numel (here));
    try
      got = fcn (windows);
    catch
      got = [];
    end
    if ! isequal (size (got), [1, numel(here)])
      [at, values] = deal (zeros (1, 0), zeros (0, 1));
      return
    end
    values(k:k+numel (here)-1) = got;
  end
end
function window_fits (wlen, n)
  if ! (isnumeric (wlen) && any (numel (wlen) == [1, 2]) && all (wlen >= 0 & wlen == fix (wlen)))
    error ("movslice: WLEN must be a scalar or 2-element array of integers >= 0");
  end
  if isscalar (wlen) && wlen == 1, error ("movslice: WLEN must be > 1"); end
  if max (wlen) > n - ! isscalar (wlen) && n > 0
    error ("movslice: window length WLEN (%d) must be shorter than length along DIM (%d)", max (wlen), n);
  end
end
function w = window (x, at, n, ends)
  inside = at >= 1 & at <= n;
  if isnumeric (ends)
    w = repmat (ends, numel (at), 1);
    w(inside) = x(at(inside));
    return
  end
  switch lower (ends)
    case "shrink", w = x(at(inside));
    case "fill", w = NaN (numel (at), 1); w(inside) = x(at(inside));
    case "same", w = x(max (1, min (n, at)));
    case {"periodic", "period"}, w = x(mod (at - 1, n) + 1);
    otherwise, error ("movfun: unknown value '%s' of ENDPOINTS", ends);
  end
end

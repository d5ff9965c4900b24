function [n, edges, bin] = histcounts (x, varargin)
  % Bins of one width by Scott's rule, rounded to digits that are easily read; or those asked for.
  if nargin < 1, print_usage (); end
  x = double (x);
  edges = [];
  bins = [];
  width = [];
  limits = [];
  norm_ = "count";
  if ! isempty (varargin) && ! ischar (varargin{1})
    if isscalar (varargin{1}), bins = varargin{1}; else, edges = varargin{1}(:).'; end
    varargin(1) = [];
  end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "numbins", bins = varargin{k+1};
      case "binwidth", width = varargin{k+1};
      case "binedges", edges = varargin{k+1}(:).';
      case "binlimits", limits = varargin{k+1};
      case "normalization", norm_ = lower (varargin{k+1});
      otherwise, error ("histcounts: unknown option '%s'", varargin{k});
    end
  end
  if isempty (edges), edges = chosen (x(isfinite (x)), bins, width, limits); end
  bin = zeros (size (x));
  inside = x >= edges(1) & x <= edges(end);
  bin(inside) = min (lookup (edges, x(inside)), numel (edges) - 1);
  n = accumarray (bin(inside)(:), 1, [numel(edges) - 1, 1]).';
  total = numel (x);
  switch norm_
    case "count"
    case "probability", n /= total;
    case "percentage", n *= 100 / total;
    case "countdensity", n ./= diff (edges);
    case "pdf", n = n / total ./ diff (edges);
    case "cumcount", n = cumsum (n);
    case "cdf", n = cumsum (n) / total;
    otherwise, error ("histcounts: unknown normalization '%s'", norm_);
  end
end
function edges = chosen (x, bins, width, limits)
  x = x(:);
  if isempty (limits)
    least = min (x); most = max (x);
    if isempty (x), least = 0; most = 1; end
  else
    least = limits(1); most = limits(2);
    x = x(x >= least & x <= most);
  end
  if ! isempty (limits)
    if isempty (bins)
      if isempty (width), width = nice (scott (x)); end
      edges = least:width:most;
      if edges(end) < most, edges(end+1) = most; end
    else
      edges = linspace (least, most, bins + 1);
    end
    return
  end
  range_ = most - least;
  if isempty (bins) && isempty (width) && ! isempty (x) && range_ <= 50 && all (x == fix (x))
    edges = least-0.5:most+0.5;
  elseif range_ == 0
    if isempty (bins), bins = 1; end
    edges = linspace (floor (2 * (least - 0.25)) / 2, ceil (2 * (most + 0.25)) / 2, bins + 1);
  elseif isempty (bins)
    if isempty (width), width = nice (scott (x)); end
    first = width * floor (least / width);
    edges = first + (0:max (1, ceil ((most - first) / width))) * width;
  else
    % The left edge has as many digits as the width; the width is rounded up as far as the last bin still holds something.
    raw = range_ / bins;
    power = 10 ^ floor (log10 (raw));
    width = power * floor (raw / power);
    first = min (width * floor (least / width), least);
    if bins > 1
      low = (most - first) / bins;
      power = 10 ^ floor (log10 ((most - first) / (bins - 1) - low));
      width = power * ceil (low / power);
    end
    edges = first + (0:bins) * width;
    edges(end) = max (edges(end), most);
  end
end
function width = scott (x)
  width = 3.5 * std (x) / max (numel (x), 1) ^ (1/3);
end
function width = nice (raw)
  % 1, 2, 3 or 5 of a power of ten.
  if ! (raw > 0), width = 1; return; end
  power = 10 ^ floor (log10 (raw));
  relative = raw / power;
  if relative < 1.5
    width = power;
  elseif relative < 2.5
    width = 2 * power;
  elseif relative < 4
    width = 3 * power;
  elseif relative < 7.5
    width = 5 * power;
  else
    width = 10 * power;
  end
end

function [out, low, high, middle] = isoutlier (x, method, varargin)
  % More than three deviations off: of the median (scaled), the mean, or more than 1.5 interquartile ranges off the quartiles.
  if nargin < 1, print_usage (); end
  if nargin < 2, method = "median"; end
  if isnumeric (method), varargin = [{method}, varargin]; method = "median"; end
  dim = find (size (x) != 1, 1);
  if isempty (dim), dim = 1; end
  if ! isempty (varargin) && isnumeric (varargin{1}), dim = varargin{1}; varargin(1) = []; end
  factor = [];
  if numel (varargin) == 2 && strcmpi (varargin{1}, "ThresholdFactor"), factor = varargin{2}; end
  if isempty (factor), factor = 3; if strcmpi (method, "quartiles"), factor = 1.5; end, end
  switch lower (method)
    case "median"
      middle = nanmedian (x, dim);
      scale = -1 / (sqrt (2) * erfcinv (3/2)) * nanmedian (abs (x - middle), dim);
      low = middle - factor * scale; high = middle + factor * scale;
    case "mean"
      middle = nanmean (x, dim);
      scale = nanstd (x, 0, dim);
      low = middle - factor * scale; high = middle + factor * scale;
    case "quartiles"
      q = quantile (x, [0.25, 0.75], dim, 5);
      part = repmat ({":"}, 1, ndims (x));
      part{dim} = 1; first = q(part{:});
      part{dim} = 2; third = q(part{:});
      middle = (first + third) / 2;
      low = first - factor * (third - first); high = third + factor * (third - first);
    otherwise
      error ("isoutlier: unknown method '%s'", method);
  end
  out = x < low | x > high;
end

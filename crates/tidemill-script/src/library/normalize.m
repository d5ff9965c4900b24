function [z, c, s] = normalize (x, varargin)
  % By zscore, norm, scale, range, center or medianiqr along a dimension.
  if nargin < 1, print_usage (); end
  dim = find (size (x) != 1, 1);
  if isempty (dim), dim = 1; end
  if ! isempty (varargin) && isnumeric (varargin{1}), dim = varargin{1}; varargin(1) = []; end
  method = "zscore";
  if ! isempty (varargin), method = lower (varargin{1}); varargin(1) = []; end
  option = [];
  if ! isempty (varargin), option = varargin{1}; end
  if numel (varargin) > 1, error ("normalize: one method at a time is supported"); end
  c = 0; s = 1;
  switch method
    case "zscore"
      if isempty (option) || strcmpi (option, "std")
        c = mean (x, dim); s = std (x, 0, dim); s(s == 0) = 1;
      elseif strcmpi (option, "robust")
        c = median (x, dim); s = median (abs (x - c), dim);
      else
        error ("normalize: unknown kind of zscore");
      end
    case "norm"
      if isempty (option), option = 2; end
      if isinf (option), s = max (abs (x), [], dim); else, s = sum (abs (x) .^ option, dim) .^ (1 / option); end
    case "scale"
      if isempty (option) || strcmpi (option, "std")
        s = std (x, 0, dim);
      elseif strcmpi (option, "mad")
        s = median (abs (x - median (x, dim)), dim);
      elseif strcmpi (option, "iqr")
        s = iqr (x, dim);
      elseif strcmpi (option, "first")
        part = repmat ({":"}, 1, ndims (x)); part{dim} = 1; s = x(part{:});
      else
        s = option;
      end
    case "range"
      if isempty (option), option = [0, 1]; end
      least = min (x, [], dim); most = max (x, [], dim);
      s = (most - least) / (option(2) - option(1));
      c = least - option(1) * s;
    case "center"
      if isempty (option) || strcmpi (option, "mean")
        c = mean (x, dim);
      elseif strcmpi (option, "median")
        c = median (x, dim);
      else
        c = option;
      end
    case "medianiqr"
      c = median (x, dim); s = iqr (x, dim);
    otherwise
      error ("normalize: unknown method '%s'", method);
  end
  z = (x - c) ./ s;
end

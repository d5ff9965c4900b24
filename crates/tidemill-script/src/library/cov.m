function c = cov (x, varargin)
  % Two arguments are two variables, unless the second is the weight: 0 divides by N - 1, 1 by N.
  if nargin < 1, print_usage (); end
  omits = false;
  if numel (varargin) > 0 && ischar (varargin{end})
    if ! any (strcmpi (varargin{end}, {"omitrows", "includenan"})), error ("cov: unknown option '%s'", varargin{end}); end
    omits = strcmpi (varargin{end}, "omitrows");
    varargin(end) = [];
  end
  weight = 0;
  if numel (varargin) > 2, error ("cov: function called with too many inputs"); end
  if numel (varargin) == 2, weight = varargin{2}; end
  if numel (varargin) == 1 && isscalar (varargin{1}) && ! isscalar (x)
    weight = varargin{1};
  elseif numel (varargin) > 0
    y = varargin{1};
    if numel (x) != numel (y), error ("cov: X and Y must have the same number of observations"); end
    x = [x(:), y(:)];
  end
  if ! (isnumeric (x) || islogical (x)), error ("cov: X must be a numeric vector or matrix"); end
  if ndims (x) > 2, error ("cov: X must be a 2-D matrix or vector"); end
  if ! isequal (weight, 0) && ! isequal (weight, 1), error ("cov: normalization OPT must be 0 or 1"); end
  if isequal (size (x), [0, 0]), c = NaN; return; end
  if isrow (x), x = x.'; end
  if omits, x(any (isnan (x), 2),:) = []; end
  if isempty (x), c = NaN (columns (x)); return; end
  if ! isa (x, "single"), x = double (x); end
  n = rows (x);
  x = center (x, 1);
  c = x' * x / max (n - 1 + weight, 1);
end

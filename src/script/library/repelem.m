function r = repelem (x, varargin)
  if nargin < 2, print_usage (); end
  if nargin == 2
    n = varargin{1};
    if ! isvector (x), error ("repelem: %dD Array requires %d or more input arguments, but only %d given", ndims (x), ndims (x) + 1, nargin); end
    if isscalar (n), n = n * ones (1, numel (x)); end
    if numel (n) != numel (x), error ("repelem: R1 must either be scalar or have the same number of elements as the vector to be replicated"); end
    at = each (n);
    if isscalar (x), r = x(ones (1, numel (at))); else, r = x(at); end
    return;
  end
  index = repmat ({":"}, 1, max (ndims (x), nargin - 1));
  for d = 1:nargin - 1
    n = varargin{d};
    if isscalar (n), n = n * ones (1, size (x, d)); end
    if numel (n) != size (x, d), error ("repelem: R%d must either be scalar or have the same number of elements as the size of dimension %d of X", d, d); end
    index{d} = each (n);
  end
  r = x(index{:});
end
function at = each (n)
  % The number of each element, as often as it is wanted.
  n = n(:).';
  if any (n < 0) || any (n != fix (n)), error ("repelem: R1 must be a non-negative integer"); end
  at = zeros (1, sum (n));
  stop = cumsum (n);
  wanted = find (n);
  % Each run begins with the step from the number of the run before.
  at(stop(wanted) - n(wanted) + 1) = diff ([0, wanted]);
  at = cumsum (at);
end

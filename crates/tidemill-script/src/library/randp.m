function r = randp (l, varargin)
  % Small means by products of uniform numbers, large ones by halves of what a gamma number leaves.
  if nargin < 1, print_usage (); end
  if ! (isnumeric (l) && isreal (l)), error ("randp: the parameter must be real"); end
  kind = "double";
  if ! isempty (varargin) && ischar (varargin{end}), kind = varargin{end}; varargin(end) = []; end
  if isempty (varargin), dims = size (l); else, dims = size (zeros (varargin{:}, "int8")); end
  if ! isscalar (l) && ! isequal (size (l), dims), error ("randp: dimensions mismatch"); end
  if isscalar (l), l = repmat (double (l), dims); else, l = double (l); end
  r = NaN (dims);
  r(l == 0) = 0;
  r(l == Inf) = NaN;
  wanted = find (l > 0 & l < Inf);
  r(wanted) = 0;
  left = l;
  % Of M events, the last comes after a gamma number: it tells how many are left (Ahrens and Dieter 1974).
  while true
    large = wanted(left(wanted) > 12);
    if isempty (large), break; end
    m = floor (7 / 8 * left(large));
    x = randg (m);
    more = x <= left(large);
    r(large(more)) += m(more);
    left(large(more)) -= x(more);
    for at = find (! more(:)).', r(large(at)) += binomial (m(at) - 1, left(large(at)) / x(at)); end
    left(large(! more)) = 0;
  end
  p = ones (size (wanted));
  limit = exp (-left(wanted));
  active = left(wanted) > 0;
  while any (active)
    p(active) = p(active)(:) .* rand (nnz (active), 1);
    active = active & p > limit;
    r(wanted(active)) += 1;
  end
  r = cast (r, kind);
end
function n = binomial (m, p)
  n = sum (rand (m, 1) < p);
end

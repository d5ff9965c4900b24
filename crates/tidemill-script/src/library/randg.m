function r = randg (a, varargin)
  % G. Marsaglia's and W. Tsang's way; below 1 by way of a + 1.
  if nargin < 1, print_usage (); end
  if ! (isnumeric (a) && isreal (a)), error ("randg: the parameter must be real"); end
  kind = "double";
  if ! isempty (varargin) && ischar (varargin{end}), kind = varargin{end}; varargin(end) = []; end
  if isempty (varargin), dims = size (a); else, dims = size (zeros (varargin{:}, "int8")); end
  if ! isscalar (a) && ! isequal (size (a), dims), error ("randg: dimensions mismatch"); end
  if isscalar (a), a = repmat (double (a), dims); else, a = double (a); end
  r = NaN (dims);
  wanted = find (a > 0 & a < Inf);
  b = a;
  b(a < 1) += 1;
  while ! isempty (wanted)
    d = b(wanted) - 1/3;
    x = randn (size (wanted));
    v = (1 + x ./ (3 * sqrt (d))) .^ 3;
    u = rand (size (wanted));
    good = v > 0;
    good(good) = log (u(good)) < x(good) .^ 2 / 2 + d(good) - d(good) .* v(good) + d(good) .* log (v(good));
    r(wanted(good)) = d(good) .* v(good);
    wanted = wanted(! good);
  end
  small = a > 0 & a < 1;
  r(small) = r(small)(:) .* rand (nnz (small), 1) .^ (1 ./ a(small)(:));
  r = cast (r, kind);
end

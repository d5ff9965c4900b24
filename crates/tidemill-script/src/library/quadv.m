function [q, n] = quadv (fcn, a, b, tol, ~, varargin)
  % Simpson's rule on intervals that are halved, of a function that gives an array.
  if nargin < 3, print_usage (); end
  if nargin < 4 || isempty (tol), tol = 1e-6; end
  if ! isscalar (tol) || tol < 0, error ("quadv: TOL must be a scalar >=0"); end
  if ischar (fcn), fcn = str2func (fcn); end
  if nargin > 5, fcn = @(x) fcn (x, varargin{:}); end
  is_single = isa (a, "single") || isa (b, "single");
  [a, b] = deal (double (a), double (b));
  c = (a + b) / 2;
  fa = fcn (a);
  fb = fcn (b);
  if any (! isfinite (fa(:))), fa = fcn (a + eps * (b - a)); end
  if any (! isfinite (fb(:))), fb = fcn (b - eps * (b - a)); end
  fc = fcn (c);
  % Three parts of different lengths, lest a period of the function is taken for a constant.
  at = [a, a + 0.27158 * (b - a), b - 0.27158 * (b - a), b];
  values = {fa, fcn(at(2)), fcn(at(3)), fb};
  middles = {fcn((at(1) + at(2)) / 2), fc, fcn((at(3) + at(4)) / 2)};
  q = 0;
  n = 7;
  for k = 1:3
    [f1, f2, f3] = deal (values{k}, middles{k}, values{k+1});
    whole = (at(k+1) - at(k)) / 6 * (f1 + 4 * f2 + f3);
    [part, m] = halves (fcn, at(k), at(k+1), f1, f2, f3, whole, tol, 0);
    q = q + part;
    n += m;
  end
  if is_single, q = single (q); end
end
function [q, n] = halves (fcn, a, b, fa, fc, fb, whole, tol, depth)
  c = (a + b) / 2;
  fd = fcn ((a + c) / 2);
  fe = fcn ((c + b) / 2);
  n = 2;
  left = (c - a) / 6 * (fa + 4 * fd + fc);
  right = (b - c) / 6 * (fc + 4 * fe + fb);
  d = left + right - whole;
  q = left + right + d / 15;
  if depth < 50 && max (abs (d(:))) > tol
    [l, nl] = halves (fcn, a, c, fa, fd, fc, left, tol, depth + 1);
    [r, nr] = halves (fcn, c, b, fc, fe, fb, right, tol, depth + 1);
    q = l + r;
    n += nl + nr;
  end
end

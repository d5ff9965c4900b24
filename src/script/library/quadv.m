function [q, n] = quadv (fcn, a, b, tol)
  % Simpson's rule on intervals that are halved, of a function that gives an array.
  if nargin < 3, print_usage (); end
  if nargin < 4 || isempty (tol), tol = 1e-6; end
  if ischar (fcn), fcn = str2func (fcn); end
  c = (a + b) / 2;
  fa = fcn (a);
  fb = fcn (b);
  if any (! isfinite (fa(:))), fa = fcn (a + eps * (b - a)); end
  if any (! isfinite (fb(:))), fb = fcn (b - eps * (b - a)); end
  fc = fcn (c);
  [q, n] = halves (fcn, a, b, fa, fc, fb, (b - a) / 6 * (fa + 4 * fc + fb), tol, 0);
  n += 3;
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

function [c, ia, ic] = uniquetol (a, tol)
  if nargin < 1, print_usage (); end
  if ! isfloat (a) || iscomplex (a), error ("uniquetol: A must be a double or single precision non-complex array"); end
  if nargin < 2, tol = ifelse_class (a); end
  if ! isfloat (tol) || iscomplex (tol) || ! isscalar (tol), error ("uniquetol: TOL must be a double or single precision non-complex scalar"); end
  [s, order] = sort (a(:));
  limit = tol * max (abs (s(isfinite (s))));
  if isempty (limit), limit = 0; end
  keep = []; ic = zeros (numel (s), 1);
  for k = 1:numel (s)
    if isempty (keep) || ! (abs (s(k) - s(keep(end))) <= limit || s(k) == s(keep(end))), keep(end+1) = k; end
    ic(order(k)) = numel (keep);
  end
  c = s(keep); ia = order(keep); ia = ia(:);
  if isrow (a), c = c.'; end
end
function tol = ifelse_class (a)
  if isa (a, "single"), tol = 1e-6; else, tol = 1e-12; end
end

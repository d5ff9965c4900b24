function [c, ia, ic] = uniquetol (a, varargin)
  if nargin < 1, print_usage (); end
  if ! isfloat (a) || iscomplex (a), error ("uniquetol: A must be a double or single precision non-complex array"); end
  if isa (a, "single"), tol = 1e-6; else, tol = 1e-12; end
  if numel (varargin) && ! ischar (varargin{1}), tol = varargin{1}; varargin(1) = []; end
  if ! isfloat (tol) || iscomplex (tol) || ! isscalar (tol), error ("uniquetol: TOL must be a double or single precision non-complex scalar"); end
  by_rows = false; all_places = false; scale = [];
  if mod (numel (varargin), 2), error ("uniquetol: PROPERTY/VALUE arguments must occur in pairs"); end
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "byrows", by_rows = logical (varargin{k+1});
      case "outputallindices", all_places = logical (varargin{k+1});
      case "datascale", scale = varargin{k+1};
      otherwise, error ("uniquetol: unknown property '%s'", varargin{k});
    end
  end
  if by_rows, [keep, ic] = rows_apart (a, tol, scale); else, [keep, ic] = elements_apart (a, tol, scale); end
  if by_rows, c = a(keep,:); else, c = a(keep)(:); if isrow (a), c = c.'; end, end
  ia = keep(:);
  if all_places
    ia = cell (numel (keep), 1);
    for k = 1:numel (keep), ia{k} = find (ic == k); end
    if isrow (a), ia = ia.'; end
  end
end
function [keep, ic] = elements_apart (a, tol, scale)
  [s, order] = sort (a(:));
  if isempty (scale), scale = max (abs (s(isfinite (s)))); end
  limit = tol * scale;
  if isempty (limit), limit = 0; end
  first = []; ic = zeros (numel (s), 1);
  for k = 1:numel (s)
    if isempty (first) || ! (abs (s(k) - s(first(end))) <= limit || s(k) == s(first(end))), first(end+1) = k; end
    ic(order(k)) = numel (first);
  end
  keep = order(first);
end
function [keep, ic] = rows_apart (a, tol, scale)
  % In the order in which they come.
  if isempty (scale), scale = max (abs (a), [], 1); end
  limit = tol * scale;
  keep = []; ic = zeros (rows (a), 1);
  for k = 1:rows (a)
    near = find (all (abs (a(keep,:) - a(k,:)) <= limit, 2), 1);
    if isempty (near), keep(end+1) = k; near = numel (keep); end
    ic(k) = near;
  end
end

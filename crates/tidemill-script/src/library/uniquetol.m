function [c, ia, ic] = uniquetol (a, varargin)
  % Elements in order, or rows as they come, that differ by more than a tolerance from those that are kept.
  if nargin < 1, print_usage (); end
  if ! (isfloat (a) && isreal (a)), error ("uniquetol: A must be a double or single precision non-complex array"); end
  tol = 1e-12;
  if isa (a, "single"), tol = 1e-6; end
  if ! isempty (varargin) && ! ischar (varargin{1})
    tol = varargin{1};
    varargin(1) = [];
    if ! (isfloat (tol) && isreal (tol) && isscalar (tol))
      error ("uniquetol: TOL must be a double or single precision non-complex scalar");
    end
  end
  if mod (numel (varargin), 2), error ("uniquetol: PROPERTY/VALUE arguments must occur in pairs"); end
  by_rows = false;
  all_indices = false;
  data_scale = [];
  for k = 1:2:numel (varargin)
    switch lower (varargin{k})
      case "byrows", by_rows = varargin{k+1};
      case "datascale", data_scale = varargin{k+1}(:).';
      case "outputallindices", all_indices = varargin{k+1};
      otherwise, error ("uniquetol: unknown property '%s'", varargin{k});
    end
  end
  if by_rows, s = a; order = (1:rows (a))'; else, [s, order] = sort (a(:)); end
  if ! any (numel (data_scale) == [0, 1, columns(s)]), error ("uniquetol: invalid DataScale size"); end
  if isempty (a), c = a; ia = []; ic = []; return; end
  if isempty (data_scale)
    known = s(isfinite (s));
    if by_rows, known = s; end
    data_scale = max (abs (known), [], 1);
    if isempty (data_scale), data_scale = 1; end
  end
  if by_rows, [kept, ic] = group (s, abs (tol) * data_scale); else, [kept, ic] = runs_of (s, abs (tol) * data_scale); end
  c = s(kept,:);
  if isrow (a) && ! by_rows, c = c.'; end
  ic(order,1) = ic;
  if all_indices
    ia = arrayfun (@(k) find (ic == k), 1:numel (kept), "UniformOutput", false);
  else
    ia = order(kept);
  end
end
function [kept, which_] = group (s, limits)
  n = rows (s);
  which_ = zeros (n, 1);
  kept = zeros (n, 1);
  count = 0;
  for k = 1:n
    if which_(k), continue; end
    near = all (abs (s - s(k,:)) <= limits | s == s(k,:), 2) & ! which_;
    near(k) = true;
    count++;
    kept(count) = k;
    which_(near) = count;
  end
  kept = kept(1:count);
end
function [kept, which_] = runs_of (s, limit)
  % The same of numbers in order, whose groups are runs. A gap beyond the limit begins one in any case.
  n = numel (s);
  begins = [true; ! (diff(s) <= limit | s(2:end) == s(1:end-1))];
  stops = [find(begins)(2:end) - 1; n];
  first = find (begins);
  for k = find (s(stops) - s(first) > limit).'
    base = s(first(k));
    for at = first(k)+1:stops(k)
      if s(at) - base > limit, begins(at) = true; base = s(at); end
    end
  end
  kept = find (begins);
  which_ = cumsum (begins);
end

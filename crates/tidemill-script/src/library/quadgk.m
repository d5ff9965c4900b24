function [q, err, count] = quadgk (fcn, a, b, varargin)
  % Gauss and Kronrod's 7 and 15 points on intervals that are halved where the two differ; infinite ends and roots at
  % the ends are substituted away.
  if nargin < 3, print_usage (); end
  abstol = 1e-10;
  reltol = 1e-6;
  points = [];
  if ! isempty (varargin) && isnumeric (varargin{1})
    if ! isempty (varargin{1}), abstol = varargin{1}; end
    if numel (varargin) > 2, error ("quadgk: can not pass additional arguments to user function"); end
  else
    if mod (numel (varargin), 2), error ("quadgk: property/value options must occur in pairs"); end
    for k = 1:2:numel (varargin)
      if ! ischar (varargin{k}), error ("quadgk: property PROP must be a string"); end
      switch lower (varargin{k})
        case "abstol", abstol = varargin{k+1};
        case "reltol", reltol = varargin{k+1};
        case "waypoints", points = varargin{k+1}(:).';
        case {"maxintervalcount", "trace"}
        otherwise, error ("quadgk: unknown property '%s'", varargin{k});
      end
    end
  end
  if ! (isscalar (abstol) && abstol >= 0), error ("quadgk: ABSTOL must be a scalar >=0"); end
  if ! (isscalar (reltol) && reltol >= 0), error ("quadgk: RELTOL must be a scalar >=0"); end
  if ischar (fcn), fcn = str2func (fcn); end
  % Ends and sums are doubles whatever the limits: the halves of short intervals differ in no single.
  is_single = isa (a, "single") || isa (b, "single") || isa (points, "single");
  [a, b, points] = deal (double (a), double (b), double (points));
  count = 0;
  contour = ! isreal ([a, b, points]);
  if contour
    corners = [a, points, b];
    g = @(t) along (fcn, corners, t);
    ends = [0, numel(corners) - 1];
  elseif isinf (a) && isinf (b)
    g = @(t) fcn (t ./ (1 - t .^ 2)) .* (1 + t .^ 2) ./ (1 - t .^ 2) .^ 2;
    if a == b, q = 0; err = 0; return; end
    ends = [-1, 1] * sign (b);
    back = @(x) (sqrt (1 + 4 * x .^ 2) - 1) ./ (2 * x + (x == 0));
  elseif isinf (b) && b > 0
    g = @(t) fcn (a + (t ./ (1 - t)) .^ 2) .* 2 .* t ./ (1 - t) .^ 3;
    ends = [0, 1];
    back = @(x) sqrt (x - a) ./ (1 + sqrt (x - a));
  elseif isinf (a) && a < 0
    g = @(t) fcn (b - (t ./ (1 - t)) .^ 2) .* 2 .* t ./ (1 - t) .^ 3;
    ends = [0, 1];
    back = @(x) sqrt (b - x) ./ (1 + sqrt (b - x));
  elseif isinf (a) || isinf (b)
    [q, err, count] = quadgk (fcn, b, a, varargin{:});
    q = -q;
    if is_single, q = single (q); err = single (err); end
    return
  else
    g = @(t) fcn ((b - a) / 4 * t .* (3 - t .^ 2) + (b + a) / 2) .* (b - a) / 4 .* 3 .* (1 - t .^ 2);
    ends = [-1, 1];
    back = @(x) 2 * cos ((acos (-(2 * (x - a) / (b - a) - 1)) + 4 * pi) / 3);
  end
  x = [0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926, ...
       0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961, ...
       0.207784955007898467600689403773245];
  x = [-x, 0, fliplr(x)]';
  k = [0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518, ...
       0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014, ...
       0.204432940075298892414161999234649];
  k = [k, 0.209482141084727828012999174891714, fliplr(k)];
  w = [0.129484966168869693270611432679082, 0.279705391489276667901467771423780, 0.381830050505118944950369775488975];
  w = [w, 0.417959183673469387755102040816327, fliplr(w)];
  edges = linspace (ends(1), ends(2), 11);
  if contour, edges = linspace (0, ends(2), 4 * ends(2) + 1); elseif ! isempty (points), edges = unique ([edges, back(points)]); if ends(1) > ends(2), edges = fliplr (edges); end, end
  left = edges(1:end-1);
  right = edges(2:end);
  q = 0;
  err = 0;
  whole = ends(2) - ends(1);
  for round = 1:40
    half = (right - left) / 2;
    t = half .* x + (right + left) / 2;
    v = g (t(:).');
    if numel (v) != numel (t), error ("quadgk: the integrand must give as many values as it gets"); end
    count += numel (t);
    is_single |= isa (v, "single");
    if isa (v, "single"), abstol = max (abstol, 1e-5); reltol = max (reltol, 1e-4); end
    v = double (reshape (v, size (t)));
    v(! isfinite (v)) = 0;
    fine = (k * v) .* half;
    e = abs (fine - (w * v(2:2:end,:)) .* half);
    total = q + sum (fine);
    bound = max (abstol, reltol * abs (total));
    bad = e > bound * abs (half * 2 / whole);
    if round == 40 || numel (left) > 2 ^ 16 || err + sum (e) <= bound, bad(:) = false; end
    q += sum (fine(! bad));
    err += sum (e(! bad));
    if ! any (bad), break; end
    middle = (left(bad) + right(bad)) / 2;
    [left, right] = deal ([left(bad), middle], [middle, right(bad)]);
  end
  if is_single, q = single (q); err = single (err); end
end
function v = along (fcn, corners, t)
  % A stretch of the path is 1 long.
  k = min (floor (t), numel (corners) - 2) + 1;
  step = diff (corners)(k);
  v = fcn (corners(k) + (t - k + 1) .* step) .* step;
end

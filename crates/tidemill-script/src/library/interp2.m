function zi = interp2 (varargin)
  args = varargin;
  method = "linear";
  outside = [];
  word = find (cellfun (@ischar, args), 1);
  if ! isempty (word)
    method = lower (strrep (args{word}, "*", ""));
    if numel (args) > word, outside = args{word+1}; end
    args = args(1:word-1);
  elseif numel (args) > 5
    outside = args{end};
    args(end) = [];
  end
  if ! any (strcmp (method, {"linear", "nearest", "pchip", "cubic", "spline"}))
    error ("interp2: the methods are linear, nearest, pchip, cubic and spline, not %s", method);
  end
  if ! isempty (outside) && ! (isnumeric (outside) && isscalar (outside)), error ("interp2: EXTRAP must be a numeric scalar"); end
  if isempty (outside) && ! strcmp (method, "spline"), outside = NA; end
  switch numel (args)
    case {1, 2}
      z = args{1};
      n = 1;
      if numel (args) == 2, n = args{2}; end
      if ! (isscalar (n) && n == fix (n) && n >= 0), error ("interp2: N must be an integer >= 0"); end
      x = 1:columns (z); y = (1:rows (z))';
      xi = 1:2^-n:columns (z); yi = (1:2^-n:rows (z))';
    case 3, [z, xi, yi] = args{:}; x = 1:columns (z); y = (1:rows (z))';
    case 5, [x, y, z, xi, yi] = args{:};
    otherwise, print_usage ();
  end
  if ! ismatrix (z) || ndims (z) > 2 || min (size (z)) < 2, error ("interp2: Z must be a 2-D matrix"); end
  if ! isvector (x) && ! isequal (size (x), size (y)), error ("interp2: X and Y must be matrices of equal size"); end
  if ! isvector (x) && ! isequal (size (x), size (z)), error ("interp2: X and Y size must match the dimensions of Z"); end
  if ! isvector (x), x = x(1,:); end
  if ! isvector (y), y = y(:,1); end
  monotonic = @(t) all (t > 0) || all (t < 0);
  if ! monotonic (diff (x(:))), error ("interp2: X must be strictly monotonic"); end
  if ! monotonic (diff (y(:))), error ("interp2: Y must be strictly monotonic"); end
  if numel (x) != columns (z) || numel (y) != rows (z), error ("interp2: X and Y size must match the dimensions of Z"); end
  if isvector (xi) && isvector (yi) && (isscalar (xi) != isscalar (yi) || isrow (xi) && iscolumn (yi) || iscolumn (xi) && isrow (yi))
    [xi, yi] = meshgrid (xi, yi);
  elseif ! isequal (size (xi), size (yi))
    error ("interp2: XI and YI must be matrices of equal size");
  elseif strcmp (method, "spline") && ! (isequal (xi, repmat (xi(1,:), rows (xi), 1)) && isequal (yi, repmat (yi(:,1), 1, columns (yi))))
    error ("interp2: XI, YI must have uniform spacing ('meshgrid' format)");
  end
  [x, order] = sort (x(:)); z = z(:,order);
  [y, order] = sort (y(:)); z = z(order,:);
  if isreal (z)
    zi = surface_at (x, y, z, xi, yi, method);
  else
    zi = complex (surface_at (x, y, real (z), xi, yi, method), surface_at (x, y, imag (z), xi, yi, method));
  end
  zi(isnan (xi) | isnan (yi)) = NaN;
  if isempty (outside), return; end
  if ! isreal (zi), outside = complex (real (outside), real (outside) * isna (outside) + imag (outside)); end
  zi(xi < x(1) | xi > x(end) | yi < y(1) | yi > y(end)) = outside;
end
function zi = surface_at (x, y, z, xi, yi, method)
  if strcmp (method, "spline")
    % Through each row first, then through the columns of what that gives at the places.
    along = reshape (spline (x, z, xi(1,:)), rows (z), []);
    zi = reshape (spline (y, along.', yi(:,1).'), columns (xi), []).';
    return
  end
  j = reshape (max (1, min (numel (x) - 1, lookup (x, xi))), size (xi));
  i = reshape (max (1, min (numel (y) - 1, lookup (y, yi))), size (xi));
  width = reshape (diff (x)(j), size (xi));
  height = reshape (diff (y)(i), size (xi));
  u = (xi - reshape (x(j), size (xi))) ./ width;
  v = (yi - reshape (y(i), size (xi))) ./ height;
  n = rows (z);
  at = i + (j - 1) * n;
  at = reshape (at, size (xi));
  switch method
    case "nearest"
      zi = z(at + (v >= 0.5) + n * (u >= 0.5));
    case "linear"
      zi = z(at) .* (1-u) .* (1-v) + z(at+1) .* (1-u) .* v + z(at+n) .* u .* (1-v) + z(at+n+1) .* u .* v;
    otherwise
      zi = hermite_at (x, y, z, at, u, v, width, height);
  end
  zi = reshape (zi, size (xi));
end
function zi = hermite_at (x, y, z, at, u, v, width, height)
  zx = slopes (x, z);
  zy = slopes (y, z.').';
  zxy = (slopes (x, zy) + slopes (y, zx.').') / 2;
  n = rows (z);
  zi = zeros (size (at));
  for right = 0:1
    for down = 0:1
      k = at + n * right + down;
      p = value_share (u, right); q = value_share (v, down);
      dp = slope_share (u, right) .* width; dq = slope_share (v, down) .* height;
      zi += z(k) .* p .* q + zx(k) .* dp .* q + zy(k) .* p .* dq + zxy(k) .* dp .* dq;
    end
  end
end
function d = slopes (x, z)
  % The slopes at the samples of each row that keep the samples' shape.
  pp = pchip (x, z);
  c = reshape (pp.coefs, rows (z), numel (x) - 1, 4);
  h = x(end) - x(end-1);
  d = [c(:,:,3), 3 * c(:,end,1) * h ^ 2 + 2 * c(:,end,2) * h + c(:,end,3)];
end
function p = value_share (t, last)
  if last, t = 1 - t; end
  p = (1 + 2 * t) .* (1 - t) .^ 2;
end
function p = slope_share (t, last)
  if last, p = t .^ 2 .* (t - 1); else, p = t .* (1 - t) .^ 2; end
end

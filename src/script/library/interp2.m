function zi = interp2 (varargin)
  method = "linear";
  outside = [];
  args = varargin;
  word = find (cellfun (@ischar, args), 1);
  if ! isempty (word)
    method = lower (args{word});
    if numel (args) > word, outside = args{word+1}; end
    args = args(1:word-1);
  end
  if isempty (outside) && ! strcmp (method, "spline"), outside = NA; end
  switch numel (args)
    case {1, 2}
      z = args{1};
      if numel (args) == 1, n = 1; else, n = args{2}; end
      x = 1:columns (z); y = 1:rows (z);
      xi = 1:0.5^n:columns (z); yi = (1:0.5^n:rows (z))';
    case 3, [z, xi, yi] = args{:}; x = 1:columns (z); y = 1:rows (z);
    case 5, [x, y, z, xi, yi] = args{:};
    otherwise, print_usage ();
  end
  if isvector (x) && isvector (y) && ! isequal (size (z), [numel(y), numel(x)])
    error ("interp2: X and Y size must match the dimensions of Z");
  elseif ! isvector (x) && ! isequal (size (x), size (y))
    error ("interp2: X and Y must be matrices of equal size");
  elseif ! isvector (x) && ! isequal (size (x), size (z))
    error ("interp2: X and Y size must match the dimensions of Z");
  end
  if ! isvector (x), x = x(1,:); end
  if ! isvector (y), y = y(:,1); end
  if isrow (xi) && iscolumn (yi) && ! (isscalar (xi) && isscalar (yi)), [xi, yi] = meshgrid (xi, yi); end
  monotonic = @(t) all (t > 0) || all (t < 0);
  if ! monotonic (diff (x(:))), error ("interp2: X must be strictly monotonic"); end
  if ! monotonic (diff (y(:))), error ("interp2: Y must be strictly monotonic"); end
  x = x(:).';
  y = y(:);
  if numel (x) > 1 && x(1) > x(2), x = fliplr (x); z = fliplr (z); end
  if numel (y) > 1 && y(1) > y(2), y = flipud (y); z = flipud (z); end
  if any (strcmp (method, {"spline", "cubic", "pchip"}))
    zi = smooth (x, y, z, xi, yi, method);
    if ! isempty (outside), zi(xi < x(1) | xi > x(end) | yi < y(1) | yi > y(end)) = outside; end
    return
  end
  j = max (1, min (numel (x) - 1, lookup (x, xi)));
  i = max (1, min (numel (y) - 1, lookup (y, yi)));
  u = (xi - reshape (x(j), size (xi))) ./ reshape (x(j+1) - x(j), size (xi));
  v = (yi - reshape (y(i), size (xi))) ./ reshape (y(i+1) - y(i), size (xi));
  at = i + (j - 1) * rows (z);
  n = rows (z);
  switch method
    case {"linear", "*linear"}
      zi = z(at) .* (1-u) .* (1-v) + z(at+1) .* (1-u) .* v + z(at+n) .* u .* (1-v) + z(at+n+1) .* u .* v;
    case "nearest"
      zi = z(at + (v >= 0.5) + n * (u >= 0.5));
    otherwise
      error ("interp2: the method '%s' is not known", method);
  end
  zi = reshape (zi, size (xi));
  zi(xi < x(1) | xi > x(end) | yi < y(1) | yi > y(end)) = outside;
end
function zi = smooth (x, y, z, xi, yi, method)
  % Along the rows, then along the columns.
  if rows (xi) > 1 && (any (any (diff (xi, 1, 1))) || any (any (diff (yi, 1, 2)))) || isrow (xi) && any (diff (yi))
    error ("interp2: XI, YI must have uniform spacing ('meshgrid' format)");
  end
  along = interp1 (x, z.', xi(1,:).', method, "extrap");
  zi = interp1 (y, reshape (along, columns (xi), []).', yi(:,1), method, "extrap");
  zi = reshape (zi, rows (yi), columns (xi));
end

function zi = interp2 (varargin)
  method = "linear";
  outside = NA;
  args = varargin;
  word = find (cellfun (@ischar, args), 1);
  if ! isempty (word)
    method = lower (args{word});
    if numel (args) > word, outside = args{word+1}; end
    args = args(1:word-1);
  end
  switch numel (args)
    case 3, [z, xi, yi] = args{:}; x = 1:columns (z); y = 1:rows (z);
    case 5, [x, y, z, xi, yi] = args{:};
    otherwise, print_usage ();
  end
  if ! isvector (x), x = x(1,:); end
  if ! isvector (y), y = y(:,1); end
  if isrow (xi) && iscolumn (yi) && ! isscalar (xi) && ! isscalar (yi), [xi, yi] = meshgrid (xi, yi); end
  x = x(:).';
  y = y(:);
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
      error ("interp2: the method '%s' is not supported yet; linear and nearest are", method);
  end
  zi = reshape (zi, size (xi));
  zi(xi < x(1) | xi > x(end) | yi < y(1) | yi > y(end)) = outside;
end

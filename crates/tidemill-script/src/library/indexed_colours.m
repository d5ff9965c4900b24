function parts = indexed_colours (name, x, map)
  is_number = isa (x, "uint8") || isa (x, "uint16") || isfloat (x) && isreal (x) && all (x(:) == fix (x(:)));
  if ! (is_number && size (x, 3) == 1)
    error ("%s: X must be an indexed image", name);
  end
  if ! (isfloat (map) && isreal (map) && ndims (map) == 2 && columns (map) == 3)
    error ("%s: MAP must be a valid colormap", name);
  end
  % Integers count from zero.
  at = double (x) + isinteger (x);
  if any (at(:) < 1 | at(:) > rows (map))
    warning ("%s: indexed image contains colors outside of colormap", name);
    at = min (max (at, 1), rows (map));
  end
  parts = cell (1, 3);
  for k = 1:3, parts{k} = reshape (map(at, k), size (x)); end
end

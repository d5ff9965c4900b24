function answer = iscolormap (map)
  if nargin != 1, print_usage (); end
  answer = ismatrix (map) && isreal (map) && ndims (map) == 2 && columns (map) == 3 && isfloat (map);
end

function celldisp (c, name)
  if nargin < 1, print_usage (); end
  if ! iscell (c), error ("celldisp: C must be a cell array"); end
  if nargin < 2, name = inputname (1); end
  for k = 1:numel (c)
    if isvector (c)
      label = sprintf ("%s{%d}", name, k);
    else
      at = cell (1, ndims (c));
      [at{:}] = ind2sub (size (c), k);
      label = [name "{" strjoin(cellfun (@(i) sprintf ("%d", i), at, "UniformOutput", false), ",") "}"];
    end
    if iscell (c{k})
      celldisp (c{k}, label);
    else
      printf ("%s = \n\n", label);
      disp (c{k});
      printf ("\n");
    end
  end
end

function writelines (lines_, file)
  if nargin != 2, print_usage (); end
  if ischar (lines_), lines_ = {lines_}; end
  if ! iscellstr (lines_), error ("writelines: LINES must be a text or a cell array of texts"); end
  [id, why] = fopen (file, "w");
  if id < 0, error ("writelines: %s: %s", file, why); end
  fprintf (id, "%s", sprintf ("%s\n", lines_{:}));
  fclose (id);
end

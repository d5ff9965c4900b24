function name = make_absolute_filename (name)
  if ! ischar (name), error ("make_absolute_filename: FILE argument must be a filename"); end
  if is_absolute_filename (name), return, end
  parts = {};
  for part = strsplit ([pwd() "/" name], "/")
    switch part{1}
      case {"", "."}
      case "..", parts = parts(1:end-1);
      otherwise, parts{end+1} = part{1};
    end
  end
  name = ["/" strjoin(parts, "/")];
end

function list = dir (directory)
  if nargin == 0, directory = "."; end
  if ! ischar (directory), error ("dir: DIRECTORY argument must be a string"); end
  if isfolder (directory)
    paths = strcat (directory, {"/"}, readdir (directory));
  else
    % All files, also those without a point in their names.
    paths = glob (regexprep (directory, '(^|/)\*\.\*$', '$1*'));
  end
  if isempty (paths) && nargout == 0, warning ("dir: nonexistent directory '%s'", directory); end
  [folders, names, ends] = cellfun (@fileparts, paths, "UniformOutput", false);
  names = strcat (names, ends);
  if nargout == 0
    if ! isempty (names), disp (list_in_columns (names)(1:end-1)); end
    return
  end
  n = numel (paths);
  fields = {"name", "folder", "date", "bytes", "isdir", "datenum", "statinfo"};
  list = cell2struct (cell (numel (fields), n), fields, 1);
  for k = 1:n
    % A link without an end is there, too.
    [info, failed] = stat (paths{k});
    if failed, info = lstat (paths{k}); end
    changed = localtime (info.mtime);
    list(k).name = names{k};
    folder = folders{k};
    if isempty (folder), folder = "."; end
    list(k).folder = canonicalize_file_name (folder);
    list(k).date = strftime ("%d-%b-%Y %H:%M:%S", changed);
    list(k).bytes = info.size;
    list(k).isdir = info.modestr(1) == "d";
    list(k).datenum = datenum (changed.year + 1900, changed.mon + 1, changed.mday, changed.hour, changed.min, changed.sec);
    list(k).statinfo = info;
  end
end

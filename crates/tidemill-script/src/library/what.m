function w = what (directory)
  if nargin == 0, directory = pwd (); end
  fields = {"path", "m", "mat", "mex", "oct", "mdl", "slx", "p", "classes", "packages"};
  titles = {"", "M-files", "MAT-files", "MEX-files", "OCT-files", "Simulink mdl-files", "Simulink slx-files", "P-files", "Classes", "Packages"};
  if ! isfolder (directory)
    w = cell2struct (cell (numel (fields), 0), fields, 1)(:);
    if nargout == 0, clear w, end
    return
  end
  directory = canonicalize_file_name (directory);
  parts = [{directory}, repmat({cell(0, 1)}, 1, numel (fields) - 1)];
  names = readdir (directory);
  for k = 1:numel (names)
    [~, ~, ending] = fileparts (names{k});
    if isfolder ([directory, "/", names{k}])
      kind = 10 - (names{k}(1) == "@");
      if ! any (names{k}(1) == "@+"), continue; end
    else
      [~, kind] = ismember (ending(2:end), fields(2:8));
      if kind == 0, continue; end
      kind++;
    end
    parts{kind}(end+1,1) = names(k);
  end
  w = cell2struct (parts(:), fields, 1);
  if nargout > 0, return; end
  for k = 2:numel (fields)
    if isempty (parts{k}), continue; end
    printf ("%s in directory %s:\n\n%s", titles{k}, directory, list_in_columns (parts{k}, 80, "   "));
    if k < max (find (! cellfun (@isempty, parts))), printf ("\n"); end
  end
  clear w
end

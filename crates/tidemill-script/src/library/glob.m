function names = glob (patterns)
  if nargin != 1, print_usage (); end
  names = cell (0, 0);
  if ischar (patterns), patterns = cellstr (patterns); end
  if ! iscellstr (patterns), return, end
  for k = 1:numel (patterns), names = [names; sort(matches(patterns{k}))]; end
end

% The files of a pattern in a column: a part of the path after the other.
function names = matches (pattern)
  names = {""};
  parts = strsplit (pattern, "/");
  if isempty (parts{1}) && numel (parts) > 1, names = {"/"}; parts(1) = []; end
  for k = 1:numel (parts)
    found = cell (0, 1);
    for i = 1:numel (names), found = [found; within(names{i}, parts{k})]; end
    if k < numel (parts), found = strcat (found(cellfun (@isfolder, found)), "/"); end
    names = found;
  end
  if isempty (names), names = cell (0, 0); end
end

% What a folder has that fits a part of a pattern; a point at the front has to be asked for.
function found = within (folder, part)
  found = cell (0, 1);
  if isempty (part), found = {folder}; return, end
  if ! any (ismember (part, "*?["))
    if exist ([folder part], "file"), found = {[folder part]}; end
    return
  end
  place = folder;
  if isempty (place), place = "."; end
  form = regexprep (part, '[.^$+(){}|\\]', '\\$0');
  form = strrep (strrep (strrep (form, "[!", "[^"), "?", "."), "*", ".*");
  all = readdir (place);
  fits = ! cellfun (@isempty, regexp (all, ["^" form "$"], "once"));
  if part(1) != ".", fits &= ! strncmp (all, ".", 1); end
  found = strcat (folder, all(fits)(:));
end

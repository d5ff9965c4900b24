function [data, delimiter, headers] = importdata (name, delimiter, headers)
  if nargin < 1, print_usage (); end
  if ! ischar (name), error ("importdata: FNAME must be a string"); end
  if nargin < 2, delimiter = ""; end
  if nargin < 3, headers = -1; end
  fid = fopen (name, "r");
  if fid < 0, error ("importdata: FNAME %s does not exist", name); end
  text = fread (fid, Inf, "char=>char").';
  fclose (fid);
  lines = strsplit (strrep (strrep (text, "\r\n", "\n"), "\r", "\n"), "\n", "CollapseDelimiters", false);
  while ! isempty (lines) && isempty (strtrim (lines{end})), lines(end) = []; end
  delimiter = do_string_escapes (delimiter);
  if headers < 0
    headers = 0;
    while headers < numel (lines) && ! any (isfinite (numbers_of (fields_of (lines{headers+1}, delimiter)))), headers++; end
  end
  body = lines(headers+1:end);
  if isempty (body), data = lines(:); delimiter = ""; return; end
  if isempty (delimiter), delimiter = delimiter_of (body); end
  parts = cellfun (@(line) fields_of (line, delimiter), body, "UniformOutput", false);
  named = cellfun (@(p) numel (p) > 1 && is_text (p(1)), parts);
  row_names = {};
  if all (named)
    row_names = cellfun (@(p) p{1}, parts, "UniformOutput", false)(:);
    parts = cellfun (@(p) p(2:end), parts, "UniformOutput", false);
  end
  numbers = NA (numel (parts), max (cellfun (@numel, parts)));
  words = {};
  for k = 1:numel (parts)
    numbers(k,1:numel (parts{k})) = numbers_of (parts{k});
    words = [words; parts{k}(is_text (parts{k}))(:)];
  end
  if headers == 0 && isempty (row_names) && isempty (words), data = numbers; return; end
  data.data = numbers;
  data.textdata = [lines(1:headers)(:); row_names; words];
  if ! isempty (row_names), data.rowheaders = row_names; end
  if headers == 0, return; end
  names = strtrim (fields_of (lines{headers}, delimiter));
  if numel (names) == columns (numbers), data.colheaders = names; end
end
function delimiter = delimiter_of (body)
  % One of those that stand in the text, or a blank between numbers.
  delimiter = "";
  for candidate = {"\t", ",", ";", " "}
    if any (strcat (strtrim (body){:}) == do_string_escapes (candidate{1}))
      delimiter = do_string_escapes (candidate{1});
      return
    end
  end
end
function parts = fields_of (line, delimiter)
  if isempty (delimiter)
    % Blanks part numbers only.
    parts = strtrim (regexp (line, '[\t,;]', "split"));
    if numel (parts) == 1
      numbers = regexp (strtrim (line), '\s+', "split");
      if all (isfinite (numbers_of (numbers))), parts = numbers; end
    end
  elseif strcmp (delimiter, " ")
    parts = regexp (strtrim (line), '\s+', "split");
  else
    parts = strsplit (line, delimiter, "CollapseDelimiters", false);
  end
end
function row = numbers_of (parts)
  row = str2double (parts);
  row(isnan (row) & ! strcmpi (strtrim (parts), "NaN")) = NA;
end
function yes = is_text (parts)
  yes = isnan (str2double (parts)) & ! ismember (strtrim (parts), {"", "NaN", "nan", "NA"});
end

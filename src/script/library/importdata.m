function [data, delimiter, headers] = importdata (name, delimiter, headers)
  if nargin < 1, print_usage (); end
  if ! ischar (name), error ("importdata: FNAME must be a string"); end
  if nargin < 2, delimiter = ""; end
  if nargin < 3, headers = -1; end
  fid = fopen (name, "r");
  if fid < 0, error ("importdata: FNAME %s does not exist", name); end
  text = fread (fid, Inf, "char=>char").';
  fclose (fid);
  lines = strsplit (strrep (strrep (text, "\r\n", "\n"), "\r", "\n"), "\n");
  while ! isempty (lines) && isempty (strtrim (lines{end})), lines(end) = []; end
  if headers < 0
    headers = 0;
    while headers < numel (lines) && ! any (isfinite (numbers_of (lines{headers+1}, delimiter))), headers++; end
  end
  if isempty (delimiter)
    body = strjoin (lines(headers+1:end), "\n");
    delimiter = " ";
    for candidate = {"\t", ",", ";"}
      if any (body == do_string_escapes (candidate{1})), delimiter = do_string_escapes (candidate{1}); break, end
    end
  end
  delimiter = do_string_escapes (delimiter);
  numbers = [];
  words = {};
  for k = headers+1:numel (lines)
    row = numbers_of (lines{k}, delimiter);
    numbers(end+1:end+1,1:max (columns (numbers), numel (row))) = NaN;
    numbers(1:end-1,columns (numbers)+1:numel (row)) = NaN;
    numbers(end,1:numel (row)) = row;
  end
  if headers == 0
    data = numbers;
    return
  end
  if isempty (numbers)
    data = lines(:);
    return
  end
  data.data = numbers;
  data.textdata = lines(1:headers)(:);
  if delimiter == " ", names = strsplit (strtrim (lines{headers})); else, names = strtrim (strsplit (lines{headers}, delimiter)); end
  if numel (names) == columns (numbers), data.colheaders = names; end
end

function row = numbers_of (line, delimiter)
  if isempty (delimiter), parts = regexp (strtrim (line), '[\s,;]+', "split");
  elseif strcmp (delimiter, " "), parts = regexp (strtrim (line), '\s+', "split");
  else, parts = strsplit (line, do_string_escapes (delimiter)); end
  row = str2double (parts);
end

function varargout = datevec (date, format)
  % Of numbers, or of texts in the usual formats or in FORMAT.
  if nargin < 1, print_usage (); end
  if ischar (date), date = cellstr (date); end
  shape = [];
  if iscell (date)
    if nargin < 2 || ! ischar (format), format = ""; end
    v = of_texts (strtrim (date(:)), format);
  else
    shape = size (date);
    date = double (date(:));
    day = floor (date);
    rest = round (86400000 * (date - day)) / 1000;
    carried = rest >= 86400;
    day += carried;
    rest -= 86400 * carried;
    % Days since the first of March of the year 0, then centuries, years and months of a calendar that begins in March.
    z = day - 60;
    century = floor ((z - 0.25) / 36524.25);
    b = z - 0.25 + century - floor (century / 4);
    year = floor (b / 365.25);
    in_year = fix (b - floor (365.25 * year)) + 1;
    month = fix ((5 * in_year + 456) / 153);
    day = in_year - fix ((153 * month - 457) / 5);
    late = month > 12;
    year += late;
    month -= 12 * late;
    hour = floor (rest / 3600);
    rest -= 3600 * hour;
    minute = floor (rest / 60);
    v = [year, month, day, hour, minute, rest - 60 * minute];
  end
  if nargout <= 1, varargout = {v}; return; end
  varargout = num2cell (v, 1);
  if ! isempty (shape), varargout = cellfun (@(c) reshape (c, shape), varargout, "UniformOutput", false); end
end
function v = of_texts (texts, format)
  formats = {"dd-mmm-yyyy HH:MM:SS", "dd-mmm-yyyy", "mm/dd/yy", "mm/dd", "HH:MM:SS", "HH:MM:SS PM", "HH:MM", "HH:MM PM", ...
             "mm/dd/yyyy", "mmm-dd-yyyy HH:MM:SS", "mmm-dd-yyyy", "dd mmm yyyy HH:MM:SS", "dd mmm yyyy", "yyyy/mm/dd", ...
             "yyyy-mm-dd", "yyyy-mm-dd HH:MM:SS", "yyyy/mm/dd HH:MM:SS", "yyyy-mm-ddTHH:MM:SS", "yyyymmddTHHMMSS", "mmm.dd,yyyy", "mmm.dd,yyyy HH:MM:SS"};
  if ! isempty (format), once_each (format); formats = {format}; end
  v = zeros (numel (texts), 6);
  left = (1:numel (texts))';
  for k = 1:numel (formats)
    if isempty (left), return; end
    [read, fits] = by_format (texts(left), formats{k});
    v(left(fits),:) = read;
    left = left(! fits);
  end
  if ! isempty (left), error ("datevec: none of the standard formats match the DATE string"); end
end
function once_each (format)
  kinds = {"year", "y+"; "month", "m+"; "day", "d+"; "hour", "H+"; "minute", "MM+"; "second", "S+"};
  for k = 1:rows (kinds)
    if numel (regexp (format, kinds{k,2})) > 1, error ("datevec: multiple %s specifiers in %s", kinds{k,1}, format); end
  end
end
function [v, fits] = by_format (texts, format)
  % What the texts say that have this format.
  months = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
  marks = {"yyyy", "mmmm", "mmm", "mm", "dd", "HH", "MM", "SS", "FFF", "PM", "AM", "yy"};
  forms = {'(\d{4})', '([A-Za-z]+)', '([A-Za-z]{3})', '(\d{1,2})', '(\d{1,2})', '(\d{1,2})', '(\d{2})', '(\d{2}(?:\.\d+)?)', '(\d{1,3})', '([AaPp][Mm])', '([AaPp][Mm])', '(\d{2})'};
  pattern = "^";
  order = zeros (1, 0);
  while ! isempty (format)
    found = 0;
    for k = 1:numel (marks)
      if strncmp (format, marks{k}, numel (marks{k})), found = k; break; end
    end
    if found
      pattern = [pattern, forms{found}];
      order(end+1) = found;
      % Seconds have no fraction of their own where the format asks for thousandths.
      if strcmp (marks{found}, "FFF"), pattern = strrep (pattern, forms{8}, '(\d{2})'); end
      format = format(numel (marks{found})+1:end);
    else
      pattern = [pattern, regexprep(format(1), '([.\\+*?\[\](){}^$|])', '\\$1')];
      format = format(2:end);
    end
  end
  tokens = regexp (texts, [pattern, "$"], "tokens", "once");
  fits = ! cellfun (@isempty, tokens);
  now_ = clock ();
  v = repmat ([now_(1), 1, 1, 0, 0, 0], nnz (fits), 1);
  if isempty (v) || isempty (order), fits(:) = false; v = zeros (0, 6); return; end
  tokens = cellfun (@(t) t(:).', tokens(fits), "UniformOutput", false);
  read = vertcat (tokens{:});
  good = true (rows (v), 1);
  for k = 1:numel (order)
    words = read(:,k);
    x = str2double (words);
    switch marks{order(k)}
      case "yyyy", v(:,1) = x;
      case "yy", v(:,1) = x + 2000 - 100 * (x + 2000 > now_(1) + 50);
      case {"mmm", "mmmm"}
        at = zeros (rows (v), 1);
        for m = 1:12, at(strncmpi (words, months{m}, 3)) = m; end
        good &= at > 0;
        v(:,2) = at;
      case "mm", good &= x <= 12; v(:,2) = x;
      case "dd", good &= x <= 31; v(:,3) = x;
      case "HH", v(:,4) = x;
      case "MM", v(:,5) = x;
      case "SS", v(:,6) = x;
      case "FFF", v(:,6) += x ./ 10 .^ cellfun (@numel, words);
      case {"PM", "AM"}, v(:,4) = mod (v(:,4), 12) + 12 * strcmpi (words, "PM");
    end
  end
  v = v(good,:);
  fits(fits) = good;
end

function text = datestr (date, format)
  if nargin < 1, date = now (); end
  if ischar (date) || iscellstr (date)
    v = datevec (date);
  elseif columns (date) == 6 && all (all (date(:,2:3) >= 0 & date(:,2:3) <= 31)) || columns (date) == 3 && rows (date) >= 1 && all (date(:,1) < 4000) && all (date(:,2) <= 12)
    v = date;
    v(:,end+1:6) = 0;
    v = datevec (datenum (v));
  else
    v = datevec (date(:));
  end
  if ! all (isfinite (v(:))), error ("datestr: DATE must be finite"); end
  names = {"dd-mmm-yyyy HH:MM:SS", "dd-mmm-yyyy", "mm/dd/yy", "mmm", "m", "mm", "mm/dd", "dd", "ddd", "d", "yyyy", "yy", ...
           "mmmyy", "HH:MM:SS", "HH:MM:SS PM", "HH:MM", "HH:MM PM", "QQ-YY", "QQ", "dd/mm", "dd/mm/yy", ...
           "mmm.dd,yyyy HH:MM:SS", "mmm.dd,yyyy", "mm/dd/yyyy", "dd/mm/yyyy", "yy/mm/dd", "yyyy/mm/dd", "QQ-YYYY", ...
           "mmmyyyy", "yyyy-mm-dd", "yyyymmddTHHMMSS", "yyyy-mm-dd HH:MM:SS"};
  if nargin < 2 || isempty (format)
    if all (all (v(:,4:6) == 0)), format = 1; else, format = 0; end
  end
  if isnumeric (format)
    if ! (isscalar (format) && any (format == 0:numel (names) - 1)), error ("datestr: FORMAT must be a text or a number from 0 to 31"); end
    format = names{format+1};
  end
  text = by_format (v, format);
end
function text = by_format (v, format)
  % A block of characters for each part of the format, a date in each row; NUL stands where a word is shorter than others.
  months = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};
  week = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  marks = {"yyyy", "YYYY", "mmmm", "dddd", "mmm", "ddd", "FFF", "yy", "YY", "mm", "dd", "HH", "MM", "SS", "PM", "AM", "QQ", "m", "d"};
  half = any (regexp (format, 'AM|PM'));
  month = v(:,2);
  day = weekday (datenum (v(:,1), month, v(:,3)));
  second = floor (v(:,6) + 1e-9);
  blocks = {repmat("", rows (v), 1)};
  while ! isempty (format)
    found = find (cellfun (@(mark) strncmp (format, mark, numel (mark)), marks), 1);
    if isempty (found)
      blocks{end+1} = repmat (format(1), rows (v), 1);
      format = format(2:end);
      continue
    end
    mark = marks{found};
    format = format(numel (mark)+1:end);
    switch mark
      case {"yyyy", "YYYY"}, block = numbers ("%04d", v(:,1));
      case {"yy", "YY"}, block = numbers ("%02d", mod (v(:,1), 100));
      case "mmmm", block = words (months, month);
      case "mmm", block = words (cellfun (@(word) word(1:3), months, "UniformOutput", false), month);
      case "m", block = words (cellfun (@(word) word(1), months, "UniformOutput", false), month);
      case "mm", block = numbers ("%02d", month);
      case "dddd", block = words (week, day);
      case "ddd", block = words (cellfun (@(word) word(1:3), week, "UniformOutput", false), day);
      case "d", block = words (cellfun (@(word) word(1), week, "UniformOutput", false), day);
      case "dd", block = numbers ("%02d", v(:,3));
      case "HH", if half, block = numbers ("%2d", mod (v(:,4) - 1, 12) + 1); else, block = numbers ("%02d", v(:,4)); end
      case "MM", block = numbers ("%02d", v(:,5));
      case "SS", block = numbers ("%02d", second);
      case "FFF", block = numbers ("%03d", round ((v(:,6) - second) * 1000));
      case {"AM", "PM"}, block = words ({"AM", "PM"}, 1 + (v(:,4) >= 12));
      case "QQ", block = words ({"Q1", "Q2", "Q3", "Q4"}, fix ((month + 2) / 3));
    end
    blocks{end+1} = block;
  end
  text = [blocks{:}];
  if any (text(:) == "\0")
    lines = cellfun (@(line) line(line != "\0"), cellstr_of (text), "UniformOutput", false);
    text = char (lines);
  end
end
function block = words (list, at)
  block = char (list);
  block(block == " ") = "\0";
  block = block(at,:);
end
function block = numbers (template, x)
  % One text of all, where they are as wide as each other.
  all_ = sprintf ([template, "\n"], x);
  ends = find (all_ == "\n");
  wide = diff ([0, ends]);
  if all (wide == wide(1))
    block = reshape (all_, wide(1), []).'(:,1:end-1);
  else
    block = repmat ("\0", numel (x), max (wide) - 1);
    for k = 1:numel (x), block(k,1:wide(k)-1) = all_(ends(k)-wide(k)+1:ends(k)-1); end
  end
end
function lines = cellstr_of (text)
  lines = mat2cell (text, ones (1, rows (text)), columns (text));
end

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
  lines = cell (rows (v), 1);
  for k = 1:rows (v), lines{k} = one_date (v(k,:), format); end
  text = char (lines);
end
function text = one_date (v, format)
  months = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};
  week = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  today = weekday (datenum (v(1), v(2), v(3)));
  second = floor (v(6) + 1e-9);
  thousandths = round ((v(6) - second) * 1000);
  half = any (regexp (format, 'AM|PM'));
  hour = v(4);
  if half, hour = mod (hour - 1, 12) + 1; end
  marks = {"yyyy", "YYYY", "mmmm", "dddd", "mmm", "ddd", "FFF", "yy", "YY", "mm", "dd", "HH", "MM", "SS", "PM", "AM", "QQ", "m", "d"};
  words = {sprintf("%04d", v(1)), sprintf("%04d", v(1)), months{v(2)}, week{today}, months{v(2)}(1:3), week{today}(1:3), ...
           sprintf("%03d", thousandths), sprintf("%02d", mod (v(1), 100)), sprintf("%02d", mod (v(1), 100)), ...
           sprintf("%02d", v(2)), sprintf("%02d", v(3)), sprintf("%02d", hour), sprintf("%02d", v(5)), ...
           sprintf("%02d", second), "", "", sprintf("Q%d", fix ((v(2) + 2) / 3)), months{v(2)}(1), week{today}(1)};
  if v(4) >= 12, words{15} = "PM"; words{16} = "PM"; else, words{15} = "AM"; words{16} = "AM"; end
  if half, words{12} = sprintf ("%2d", hour); end
  text = "";
  while ! isempty (format)
    found = 0;
    for k = 1:numel (marks)
      if strncmp (format, marks{k}, numel (marks{k})), found = k; break; end
    end
    if found
      text = [text, words{found}];
      format = format(numel (marks{found})+1:end);
    else
      text = [text, format(1)];
      format = format(2:end);
    end
  end
end

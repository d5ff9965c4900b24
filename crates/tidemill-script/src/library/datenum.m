function [days, seconds] = datenum (year, month, day, hour, minute, second)
  % Days since the year 0, of the proleptic Gregorian calendar.
  if nargin < 1, print_usage (); end
  if ischar (year) || iscellstr (year)
    if nargin > 1, v = datevec (year, month); else, v = datevec (year); end
    days = datenum (v);
    seconds = 86400 * days;
    return
  end
  if nargin == 1
    v = year;
    if columns (v) < 3 || columns (v) > 6, error ("datenum: expected date vector containing [YEAR, MONTH, DAY, HOUR, MINUTE, SECOND]"); end
    v(:,end+1:6) = 0;
    [year, month, day, hour, minute, second] = deal (v(:,1), v(:,2), v(:,3), v(:,4), v(:,5), v(:,6));
  else
    if nargin < 3, day = 1; end
    if nargin < 4, hour = 0; end
    if nargin < 5, minute = 0; end
    if nargin < 6, second = 0; end
  end
  if ! (isa (year, "double") && isa (month, "double") && isa (day, "double")), error ("datenum: all inputs must be of class double"); end
  month(month < 1) = 1;
  part = month - floor (month);
  month = floor (month);
  year += floor ((month - 1) / 12);
  month = mod (month - 1, 12) + 1;
  day += part .* eomday (floor (year), month);
  before = [306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275];
  day += reshape (before(month), size (month)) + 60;
  year += ceil ((month - 14) / 12);
  % A fraction of a year is one of its days, of which a leap year, begun in March, has one more.
  day += (year - floor (year)) .* is_leap_year (floor (year) + 1);
  day += 365 * year + floor (year / 4) - floor (year / 100) + floor (year / 400);
  days = day + (hour + (minute + second / 60) / 60) / 24;
  if nargout > 1
    if day == fix (day), seconds = day * 86400 + hour * 3600 + minute * 60 + second; else, seconds = days * 86400; end
  end
end

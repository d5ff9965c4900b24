function t = mktime (tm)
  if nargin != 1 || ! isstruct (tm), print_usage (); end
  t = 86400 * (datenum (tm.year + 1900, tm.mon + 1, tm.mday) - 719529) + 3600 * tm.hour + 60 * tm.min + tm.sec + tm.usec / 1e6;
end

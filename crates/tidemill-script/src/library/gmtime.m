function tm = gmtime (t)
  if nargin != 1, print_usage (); end
  days = floor (t / 86400);
  rest = t - 86400 * days;
  v = datevec (days + 719529);
  tm = struct ("usec", round (1e6 * (rest - floor (rest))), "sec", mod (floor (rest), 60), "min", mod (floor (rest / 60), 60), ...
               "hour", floor (rest / 3600), "mday", v(3), "mon", v(2) - 1, "year", v(1) - 1900, "wday", mod (days + 4, 7), ...
               "yday", days + 719529 - datenum (v(1), 1, 1), "isdst", 0, "gmtoff", 0, "zone", "GMT");
end

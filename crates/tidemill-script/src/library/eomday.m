function last = eomday (year, month)
  if nargin != 2, print_usage (); end
  days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  last = reshape (days(month), size (month)) + (month == 2 & is_leap_year (year));
end

function answer = is_leap_year (year)
  if nargin < 1, year = clock ()(1); end
  answer = (mod (year, 4) == 0 & mod (year, 100) != 0) | mod (year, 400) == 0;
end

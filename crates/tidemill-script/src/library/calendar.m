function days = calendar (varargin)
  % A month as six weeks from Sunday on.
  day = 0;
  switch nargin
    case 0, v = clock (); year = v(1); month = v(2); day = v(3);
    case 1, v = datevec (varargin{1}); year = v(1); month = v(2); day = v(3);
    case 2, year = varargin{1}; month = varargin{2};
    otherwise, print_usage ();
  end
  first = weekday (datenum (year, month, 1));
  last = eomday (year, month);
  weeks = zeros (7, 6);
  weeks(first:first+last-1) = 1:last;
  if nargout > 0, days = weeks.'; return; end
  text = sprintf ([repmat("    %2d", 1, 7), "\n"], weeks);
  if day > 0
    at = first + day - 2;
    text(at * 6 + floor (at / 7) + 4 + (day > 9) * 0 + (day < 10)) = "*";
  end
  printf ("                    %s\n     S     M    Tu     W    Th     F     S\n%s", datestr ([year, month, 1, 0, 0, 0], "mmm yyyy"), text);
end

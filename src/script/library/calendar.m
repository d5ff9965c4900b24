function days = calendar (varargin)
  % A month as six weeks from Sunday on.
  switch nargin
    case 0, v = clock (); year = v(1); month = v(2);
    case 1, v = datevec (varargin{1}); year = v(1); month = v(2);
    case 2, year = varargin{1}; month = varargin{2};
    otherwise, print_usage ();
  end
  first = weekday (datenum (year, month, 1));
  last = eomday (year, month);
  days = zeros (7, 6);
  days(first:first+last-1) = 1:last;
  days = days.';
end

function d = addtodate (d, q, f)
  if nargin != 3, print_usage (); end
  switch f
    case {"year", "month"}
      if isscalar (d), d = repmat (d, size (q)); end
      v = datevec (d);
      if strcmp (f, "year"), v(:,1) += q(:); else, v(:,2) += q(:); end
      v(:,1) += floor ((v(:,2) - 1) / 12);
      v(:,2) = mod (v(:,2) - 1, 12) + 1;
      v(:,3) = min (v(:,3), eomday (v(:,1), v(:,2)));
      d = reshape (datenum (v), size (d));
    case "day", d += q;
    case "hour", d += q / 24;
    case "minute", d += q / 1440;
    case "second", d += q / 86400;
    case "millisecond", d += q / 86400000;
    otherwise, error ("addtodate: Invalid time unit: %s", f);
  end
end

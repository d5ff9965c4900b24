function s = etime (t1, t0)
  if nargin != 2, print_usage (); end
  s = (datenum (t1(1:3)) - datenum (t0(1:3))) * 86400 + [3600, 60, 1] * (t1(4:6) - t0(4:6))';
end

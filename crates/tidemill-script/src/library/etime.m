function s = etime (t1, t0)
  if nargin != 2, print_usage (); end
  if columns (t1) != 6, t1 = t1(:).'; end
  if columns (t0) != 6, t0 = t0(:).'; end
  s = (datenum (t1(:,1:3)) - datenum (t0(:,1:3))) * 86400 + (t1(:,4:6) - t0(:,4:6)) * [3600; 60; 1];
end

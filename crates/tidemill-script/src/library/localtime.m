function tm = localtime (t)
  % The clocks of scripts show UTC.
  if nargin != 1, print_usage (); end
  tm = gmtime (t);
  tm.zone = "UTC";
end

function [n, s] = weekday (d, format)
  if nargin < 1, print_usage (); end
  if nargin < 2, format = "short"; end
  if ischar (d) || iscellstr (d), d = datenum (d); end
  n = mod (floor (d) - 2, 7) + 1;
  if nargout > 1
    names = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    if strcmp (format, "short"), names = cellfun (@(w) w(1:3), names, "UniformOutput", false); end
    s = char (names(n));
  end
end

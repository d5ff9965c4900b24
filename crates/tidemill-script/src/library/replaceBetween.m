function out = replaceBetween (text, first, last, new, option, value)
  if nargin < 4, print_usage (); end
  inclusive = ! (ischar (first) || ischar (last));
  if nargin == 6 && strcmpi (option, "Boundaries"), inclusive = strcmpi (value, "inclusive"); end
  out = each_text ("replaceBetween", text, @(t) one (t, new, first, last, inclusive));
end
function t = one (t, new, first, last, inclusive)
  [from, to] = between_bounds ("replaceBetween", t, first, last, inclusive);
  t = spliced (t, from, to, new);
end

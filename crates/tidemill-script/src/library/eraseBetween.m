function out = eraseBetween (text, first, last, option, value)
  if nargin < 3, print_usage (); end
  inclusive = ! (ischar (first) || ischar (last));
  if nargin == 5 && strcmpi (option, "Boundaries"), inclusive = strcmpi (value, "inclusive"); end
  out = each_text ("eraseBetween", text, @(t) one (t, "", first, last, inclusive));
end
function t = one (t, new, first, last, inclusive)
  [from, to] = between_bounds ("eraseBetween", t, first, last, inclusive);
  t = spliced (t, from, to, new);
end

function out = insertBefore (text, place, new)
  if nargin != 3, print_usage (); end
  out = each_text ("insertBefore", text, @(t) one (t, place, new));
end
function t = one (t, place, new)
  if ischar (place)
    starts = strfind (t, place, "overlaps", false);
    at = starts;
  else
    at = place;
  end
  t = spliced (t, at, at - 1, new);
end

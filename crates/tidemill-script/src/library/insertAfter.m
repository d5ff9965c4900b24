function out = insertAfter (text, place, new)
  if nargin != 3, print_usage (); end
  out = each_text ("insertAfter", text, @(t) one (t, place, new));
end
function t = one (t, place, new)
  if ischar (place)
    starts = strfind (t, place, "overlaps", false);
    at = starts + numel (place);
  else
    at = place + 1;
  end
  t = spliced (t, at, at - 1, new);
end

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
  for k = numel (at):-1:1, t = [t(1:at(k)-1), new, t(at(k):end)]; end
end

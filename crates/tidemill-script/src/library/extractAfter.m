function out = extractAfter (text, place)
  if nargin != 2, print_usage (); end
  out = each_text ("extractAfter", text, @(t) one (t, place));
end
function t = one (t, place)
  if ischar (place)
    at = strfind (t, place);
    if isempty (at), t = ""; return; end
    place = at(1) + numel (place) - 1;
  end
  if place < 0 || place > numel (t), error ("extractAfter: the position must be within the text"); end
  t = t(place+1:end);
end

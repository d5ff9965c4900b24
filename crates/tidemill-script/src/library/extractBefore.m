function out = extractBefore (text, place)
  if nargin != 2, print_usage (); end
  out = each_text ("extractBefore", text, @(t) one (t, place));
end
function t = one (t, place)
  if ischar (place)
    at = strfind (t, place);
    if isempty (at), t = ""; return; end
    place = at(1);
  end
  if place < 1 || place > numel (t) + 1, error ("extractBefore: the position must be within the text"); end
  t = t(1:place-1);
end

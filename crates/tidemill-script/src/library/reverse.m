function out = reverse (text)
  if nargin != 1, print_usage (); end
  out = each_text ("reverse", text, @fliplr);
end

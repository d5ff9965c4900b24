function text = erase (text, pattern)
  if nargin != 2, print_usage (); end
  if ischar (pattern), pattern = {pattern}; end
  [~, order] = sort (-cellfun (@numel, pattern(:)));
  for k = order', text = strrep (text, pattern{k}, ""); end
end

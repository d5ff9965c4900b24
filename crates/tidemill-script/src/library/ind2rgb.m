function [varargout] = ind2rgb (x, map)
  if nargin != 2, print_usage (); end
  varargout = indexed_colours ("ind2rgb", x, map);
  if nargout < 2, varargout = {cat(3, varargout{:})}; end
end

function [c, s] = givens (x, y)
  if nargin != 2, print_usage (); end
  r = hypot (x, y);
  if r == 0, cs = 1; sn = 0; else, cs = x / r; sn = y / r; end
  if nargout < 2, c = [cs, sn; -sn, cs]; else, c = cs; s = sn; end
end

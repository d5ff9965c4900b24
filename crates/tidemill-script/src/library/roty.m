function m = roty (angle)
  if nargin != 1 || ! isscalar (angle), print_usage (); end
  c = cosd (angle);
  s = sind (angle);
  m = [c, 0, s; 0, 1, 0; -s, 0, c];
end

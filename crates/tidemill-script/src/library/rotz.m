function m = rotz (angle)
  if nargin != 1 || ! isscalar (angle), print_usage (); end
  c = cosd (angle);
  s = sind (angle);
  m = [c, -s, 0; s, c, 0; 0, 0, 1];
end

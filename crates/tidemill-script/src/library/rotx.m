function m = rotx (angle)
  if nargin != 1 || ! isscalar (angle), print_usage (); end
  c = cosd (angle);
  s = sind (angle);
  m = [1, 0, 0; 0, c, -s; 0, s, c];
end

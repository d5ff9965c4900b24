function out = hsv2rgb (in)
  if nargin != 1, print_usage (); end
  [in, shape] = colour_rows ("hsv2rgb", "HSV", in);
  part = @(shift) mod (in(:,1) + shift, 1);
  ramp = @(h) min (max (min (6 * h, 4 - 6 * h), 0), 1);
  [s, v] = deal (in(:,2), in(:,3));
  out = v .* s .* [ramp(part (1/3)), ramp(part (0)), ramp(part (-1/3))] + v .* (1 - s);
  out = colours_shaped (out, shape);
end

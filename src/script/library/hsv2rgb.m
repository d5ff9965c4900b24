function out = hsv2rgb (in)
  if nargin != 1, print_usage (); end
  is_image = ndims (in) == 3;
  if is_image && size (in, 3) == 3, shape = size (in); in = reshape (in, [], 3); else, shape = []; end
  if ! (isfloat (in) && isreal (in) && ndims (in) == 2 && columns (in) == 3)
    error ("hsv2rgb: HSV must be a colormap or HSV image");
  end
  part = @(shift) mod (in(:,1) + shift, 1);
  ramp = @(h) min (max (min (6 * h, 4 - 6 * h), 0), 1);
  [s, v] = deal (in(:,2), in(:,3));
  out = v .* s .* [ramp(part (1/3)), ramp(part (0)), ramp(part (-1/3))] + v .* (1 - s);
  if ! isempty (shape), out = reshape (out, shape); end
end

function out = rgb2hsv (in)
  if nargin != 1, print_usage (); end
  is_image = ndims (in) == 3;
  if is_image && size (in, 3) == 3, shape = size (in); in = reshape (in, [], 3); else, shape = []; end
  if ! (isfloat (in) && isreal (in) && ndims (in) == 2 && columns (in) == 3)
    error ("rgb2hsv: RGB must be a colormap or RGB image");
  end
  value = max (in, [], 2);
  range_ = value - min (in, [], 2);
  [r, g, b] = deal (in(:,1), in(:,2), in(:,3));
  hue = zeros (size (value), class (in));
  at = range_ > 0 & value == b;
  hue(at) = 4 + (r(at) - g(at)) ./ range_(at);
  at = range_ > 0 & value == g;
  hue(at) = 2 + (b(at) - r(at)) ./ range_(at);
  at = range_ > 0 & value == r;
  hue(at) = (g(at) - b(at)) ./ range_(at);
  hue = hue / 6;
  hue(hue < 0) += 1;
  saturation = range_ ./ value;
  saturation(value == 0) = 0;
  out = [hue, saturation, value];
  if ! isempty (shape), out = reshape (out, shape); end
end

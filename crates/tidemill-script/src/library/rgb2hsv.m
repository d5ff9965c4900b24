function out = rgb2hsv (in)
  if nargin != 1, print_usage (); end
  [in, shape] = colour_rows ("rgb2hsv", "RGB", in);
  value = max (in, [], 2);
  range_ = value - min (in, [], 2);
  [r, g, b] = deal (in(:,1), in(:,2), in(:,3));
  hue = zeros (size (value), underlyingType (in));
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
  out = colours_shaped ([hue, saturation, value], shape);
end

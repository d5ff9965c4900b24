function out = colours_shaped (list, shape)
  out = list;
  if isempty (shape), return; end
  out = permute (reshape (list, [shape(1:2), prod(shape(4:end)), 3]), [1, 2, 4, 3]);
end

function y = movmin (x, wlen)
  y = movfun (@min, x, wlen);
end

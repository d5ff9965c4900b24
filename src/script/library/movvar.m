function y = movvar (x, wlen)
  y = movfun (@var, x, wlen);
end

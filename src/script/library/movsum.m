function y = movsum (x, wlen)
  y = movfun (@sum, x, wlen);
end

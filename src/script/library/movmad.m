function y = movmad (x, wlen)
  y = movfun (@(v) mad (v), x, wlen);
end

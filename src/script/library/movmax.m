function y = movmax (x, wlen)
  y = movfun (@max, x, wlen);
end

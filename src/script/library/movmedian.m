function y = movmedian (x, wlen)
  y = movfun (@median, x, wlen);
end

function y = movmean (x, wlen)
  y = movfun (@mean, x, wlen);
end

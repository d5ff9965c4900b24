function y = movstd (x, wlen)
  y = movfun (@std, x, wlen);
end

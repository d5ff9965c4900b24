function y = movprod (x, wlen)
  y = movfun (@prod, x, wlen);
end

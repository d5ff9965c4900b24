function text = show (x)
  % A value as the recordings write it: class, size, elements.
  if iscomplex (x)
    numbers = sprintf ("%.17g:%.17g,", [real(double (x)(:)).'; imag(double (x)(:)).']);
    kind = ["c" class(x)];
  else
    kind = class (x);
    if any (strcmp (kind, {"int64", "uint64"}))
      numbers = [strjoin(arrayfun (@(e) strtrim (disp (e)), x(:).', "UniformOutput", false), ","), ","];
    else
      numbers = sprintf ("%.17g,", double (x));
    end
  end
  text = sprintf ("%s %s %s", kind, sprintf ("%dx", size (x))(1:end-1), numbers(1:end-1));
end

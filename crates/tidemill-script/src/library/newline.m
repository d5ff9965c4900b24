function c = newline ()
  c = "\n";
end

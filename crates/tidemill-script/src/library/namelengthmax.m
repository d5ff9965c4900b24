function n = namelengthmax ()
  n = 63;
end

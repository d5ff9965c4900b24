function text = date ()
  text = datestr (now (), 1);
end

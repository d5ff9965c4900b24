function answer = isstring (x)
  answer = false;
end

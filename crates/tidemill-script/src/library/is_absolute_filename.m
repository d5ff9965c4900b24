function yes = is_absolute_filename (name)
  yes = ischar (name) && isrow (name) && name(1) == "/";
end

function lines_ = readlines (file)
  if nargin != 1, print_usage (); end
  lines_ = splitlines (fileread (file));
end

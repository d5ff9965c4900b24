function yes = signbit (x)
  if nargin != 1, print_usage (); end
  yes = x < 0 | x == 0 & 1 ./ x < 0;
end

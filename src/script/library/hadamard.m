function h = hadamard (n)
  if nargin != 1, print_usage (); end
  [f, k] = log2 (n);
  if f != 0.5, error ("hadamard: N must be a power of two; other orders are not supported"); end
  h = 1;
  for i = 1:k-1, h = [h, h; h, -h]; end
end

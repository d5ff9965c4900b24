function g = polyaffine (f, mu)
  % g(x) = f((x - mu(1)) / mu(2))
  if nargin != 2, print_usage (); end
  g = 0;
  by = [1, -mu(1)] / mu(2);
  for c = f(:).'
    g = conv (g, by);
    g(end) += c;
  end
  g = g(end-numel (f)+1:end);
end

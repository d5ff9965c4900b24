function pp = mkpp (x, p, d)
  if nargin < 2, print_usage (); end
  if nargin < 3, d = 1; end
  n = numel (x) - 1;
  pp = struct ("form", "pp", "breaks", x(:).', "coefs", [], "pieces", n, "order", numel (p) / (n * prod (d)), "dim", d);
  pp.coefs = reshape (p, n * prod (d), []);
end

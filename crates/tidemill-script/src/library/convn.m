function c = convn (a, b, shape)
  if nargin < 2, print_usage (); end
  if nargin < 3, shape = "full"; end
  n = max (ndims (a), ndims (b));
  sa = size (a); sa(end+1:n) = 1; sb = size (b); sb(end+1:n) = 1;
  c = zeros (sa + sb - 1);
  if isa (a, "single") || isa (b, "single"), c = single (c); end
  at = cell (1, n);
  for k = 1:numel (b)
    [at{:}] = ind2sub (sb, k);
    range = cell (1, n);
    for d = 1:n, range{d} = at{d}:at{d} + sa(d) - 1; end
    c(range{:}) += a * b(k);
  end
  switch shape
    case "full", return;
    case "same", first = ceil ((sb + 1) / 2); last = first + sa - 1;
    case "valid", first = sb; last = max (sa, sb - 1);
    otherwise, error ("convn: SHAPE type not valid");
  end
  for d = 1:n, range{d} = first(d):last(d); end
  c = c(range{:});
end

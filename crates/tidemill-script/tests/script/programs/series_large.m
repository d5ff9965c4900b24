% Sums, scans, masks and extrema of large rows and columns.
x = (1:50000)'; y = x.^2;
a = sum (y), b = mean (y)
c = cumsum (x); c([1 10 end])'
v = var (x), s = std (x); printf ('%.6f\n', s);
m = mod (x, 7) == 0; sum (m), x(m)(1:5)'
z = x; z(z > 10) = 0; sum (z)
w = zeros (size (x)); w(1:2:end) = 1; sum (w)
l = x(end:-1:1); l(1:3)'
q = int32 (x); class (q), sum (q), q(end) * 100000
r = repmat ([1 2 3], 1, 10000); sum (r), size (r)
dot (x, x), norm (x) > 6e6
any (x == 5), all (x > 0), numel (find (x > 49995)), find (x > 49995, 1)
u = sin (x / 1000) .* exp (-x / 20000);
[hi, i] = max (u); [lo, j] = min (u);
printf ('%.8f at %d, %.8f at %d\n', hi, i, lo, j);
[sorted, order] = sort (mod (x * 7919, 50021)); sorted(1:4)', order(1:4)', issorted (sorted)
k = unique (mod (x, 9))', numel (unique (round (u * 100)))
d = diff (u); printf ('%.10f\n', max (abs (d)));
t = trapz (x, u); printf ('%.4f\n', t);
M = reshape (u, 250, 200); size (sum (M)), printf ('%.6f ', sum (M)(1:3)); printf ("\n");
size (mean (M, 2)), isequal (M(:), u), isequal (M', M.')
isnan (u(3)), nnz (u > 0.5), median (x), f = flipud (x)(1:2)'

% Primes by a sieve over a large logical row, and what can be asked of them.
N = 60000;
s = true (1, N); s(1) = false;
for k = 2:floor (sqrt (N))
  if s(k), s(k*k:k:N) = false; end
end
p = find (s);
count = numel (p)
p([1:5, end])
gaps = diff (p);
[g, at] = max (gaps);
printf ('largest gap %d after %d\n', g, p(at));
twins = sum (gaps == 2)
by_digit = histc (mod (p, 10), 0:9)
isequal (p, primes (N))
per_block = sum (reshape (s, 10000, 6))
last = p(p > N - 100)
c = cumsum (s); c([10 100 1000 10000])
estimate = N / log (N);
printf ('%.3f\n', count / estimate);

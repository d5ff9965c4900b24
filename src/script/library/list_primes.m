function p = list_primes (n)
  if nargin < 1, n = 25; end
  if n < 6, bound = 13; else, bound = ceil (n * (log (n) + log (log (n)))); end
  p = primes (bound)(1:n);
end

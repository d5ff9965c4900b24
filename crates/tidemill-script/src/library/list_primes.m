function p = list_primes (n)
  if nargin < 1, n = 25; end
  if ! (isscalar (n) && isreal (n)), error ("list_primes: N must be a real scalar"); end
  if n < 1, p = []; return; end
  if n < 6, bound = 13; else, bound = ceil (n * (log (n) + log (log (n)))); end
  p = primes (bound)(1:n);
end

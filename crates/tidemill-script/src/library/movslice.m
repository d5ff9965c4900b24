function [slices, centres, before, after, window] = movslice (n, wlen)
  if nargin != 2, print_usage (); end
  if ! (isscalar (n) && n == fix (n) && n > 0), error ("movslice: N must be a positive integer"); end
  if ! (isnumeric (wlen) && any (numel (wlen) == [1, 2]) && all (wlen >= 0 & wlen == fix (wlen)))
    error ("movslice: WLEN must be a scalar or 2-element array of integers >= 0");
  end
  if isscalar (wlen) && wlen == 1, error ("movslice: WLEN must be > 1"); end
  if isscalar (wlen)
    first = -fix (wlen / 2);
    last = first + wlen - 1;
  else
    [first, last] = deal (-wlen(1), wlen(2));
  end
  if max (wlen) > n
    error ("movslice: window length WLEN (%d) must be shorter than length along DIM (%d)", max (wlen), n);
  end
  window = (first:last).';
  centres = 1 - first:n - last;
  before = 1:-first;
  after = n - last + 1:n;
  slices = centres + window;
end

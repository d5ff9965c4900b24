function [a, used] = rref (a, tol)
  if nargin < 1, print_usage (); end
  [m, n] = size (a);
  if nargin < 2, tol = eps * max (m, n) * norm (a, Inf); end
  used = zeros (1, 0);
  r = 1;
  for c = 1:n
    if r > m, break; end
    [most, at] = max (abs (a(r:m,c)));
    at += r - 1;
    if most <= tol
      a(r:m,c) = zeros (m - r + 1, 1);
    else
      used(1,end+1) = c;
      a([at, r],c:n) = a([r, at],c:n);
      a(r,c:n) = a(r,c:n) / a(r,c);
      others = [1:r-1, r+1:m];
      a(others,c:n) = a(others,c:n) - a(others,c) * a(r,c:n);
      r++;
    end
  end
end

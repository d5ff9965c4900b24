function d = polygcd (b, a, tol)
  if nargin < 2, print_usage (); end
  if nargin < 3, tol = sqrt (eps); end
  b = polyreduce (b) / polyreduce (b)(1);
  a = polyreduce (a);
  tol *= norm (b, Inf);
  while true
    [~, r] = deconv (b, a);
    r(abs (r) <= tol) = 0;
    r = polyreduce (r);
    if isequal (r, 0), d = a / a(1); return; end
    % What is no number leaves no smaller remainder.
    if numel (r) >= numel (a), d = a / a(1); return; end
    b = a;
    a = r;
    if isscalar (a), d = 1; return; end
  end
end

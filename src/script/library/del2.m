function d = del2 (m, h)
  if nargin < 1, print_usage (); end
  if nargin < 2, h = 1; end
  parts = 0;
  d = zeros (size (m));
  for k = 1:2
    n = size (m, k);
    if n < 3, continue; end
    if k == 2, x = m.'; else, x = m; end
    e = zeros (size (x));
    e(2:end-1,:) = x(3:end,:) - 2 * x(2:end-1,:) + x(1:end-2,:);
    if n > 3
      e(1,:) = 2 * e(2,:) - e(3,:);
      e(end,:) = 2 * e(end-1,:) - e(end-2,:);
    else
      e(1,:) = e(2,:);
      e(end,:) = e(2,:);
    end
    if k == 2, e = e.'; end
    d += e / h ^ 2;
  end
  d /= 2 * ndims (m);
end

function [in, on] = inpolygon (x, y, xv, yv)
  if nargin != 4, print_usage (); end
  in = false (size (x));
  on = in;
  n = numel (xv);
  j = n;
  for i = 1:n
    dx = xv(j) - xv(i);
    dy = yv(j) - yv(i);
    away = dx .* (y - yv(i)) - (x - xv(i)) .* dy;
    between = (yv(i) <= y & y < yv(j)) | (yv(j) <= y & y < yv(i));
    cross = between & away * (-1) ^ (dy > 0) > 0;
    in(cross) = ! in(cross);
    on |= away == 0 & ((yv(i) <= y & y <= yv(j)) | (yv(j) <= y & y <= yv(i))) ...
          & ((xv(i) <= x & x <= xv(j)) | (xv(j) <= x & x <= xv(i)));
    j = i;
  end
  in |= on;
end

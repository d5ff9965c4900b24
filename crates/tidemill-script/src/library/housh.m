function [housv, beta, zer] = housh (x, j, z)
  if nargin != 3, print_usage (); end
  if ! isvector (x), error ("housh: first input must be a vector"); end
  if ! isscalar (j), error ("housh: second argument must be an integer scalar"); end
  housv = x;
  m = max (abs (housv));
  if m == 0, beta = 0; zer = true; return; end
  housv /= m;
  alpha = norm (housv);
  if alpha > z
    beta = 1 / (alpha * (alpha + abs (housv(j))));
    sg = sign (housv(j));
    if sg == 0, sg = 1; end
    housv(j) += alpha * sg;
    zer = false;
  else
    beta = 0;
    zer = true;
  end
end

function [s, err] = sqrtm (a)
  if nargin != 1, print_usage (); end
  if ndims (a) != 2 || rows (a) != columns (a), error ("sqrtm: A must be a square matrix"); end
  s = root_of (a);
  if nargout > 1, err = norm (s * s - a, "fro") / norm (a, "fro"); end
end
function s = root_of (a)
  if isempty (a), s = a; return; end
  if isdiag (a)
    s = full (diag (sqrt (diag (a))));
  elseif ishermitian (a)
    [v, d] = eig (a);
    s = v * diag (sqrt (diag (d))) * v';
    if all (diag (d) >= 0), s = (s + s') / 2; end
  elseif isreal (a) && all (real (eig (a)) > 0)
    % Denman and Beavers: s goes to the root, z to its inverse.
    s = a;
    z = eye (size (a));
    for k = 1:100
      next = (s + inv (z)) / 2;
      z = (z + inv (s)) / 2;
      change = norm (next - s, 1);
      s = next;
      if change <= 4 * eps * norm (s, 1), break; end
    end
  else
    [v, d] = eig (a);
    s = v * diag (sqrt (diag (d))) / v;
  end
end

function answer = isdefinite (a, tol)
  if nargin < 1, print_usage (); end
  if nargin < 2, tol = 100 * eps * norm (a, "fro"); end
  if ! (isnumeric (tol) && isscalar (tol) && tol >= 0), error ("isdefinite: TOL must be a scalar >= 0"); end
  answer = ishermitian (a, tol) && all (eig ((a + a') / 2) > tol);
end

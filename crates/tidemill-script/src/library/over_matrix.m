function y = over_matrix (m1, m2, x)
  % What two preconditioners leave of a vector.
  y = x;
  if ! isempty (m1), if isnumeric (m1), y = m1 \ y; else, y = feval (m1, y); end, end
  if ! isempty (m2), if isnumeric (m2), y = m2 \ y; else, y = feval (m2, y); end, end
end

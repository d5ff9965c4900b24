function [a, b, c] = three_columns (who, what, m)
  if ! isnumeric (m) || ndims (m) != 2, error ("%s: %s must be a 2-D numeric array", who, what); end
  if isvector (m) && numel (m) == 3, m = m(:).'; end
  if columns (m) != 3, error ("%s: %s must be a 3-element vector or 3-column array", who, what); end
  a = m(:,1); b = m(:,2); c = m(:,3);
end

function [count, value] = runlength (x)
  if nargin != 1, print_usage (); end
  if ! isnumeric (x) || ! isvector (x), error ("runlength: X must be a numeric vector"); end
  x = x(:).';
  ends = [find(x(1:end-1) != x(2:end)), numel(x)];
  count = diff ([0, ends]);
  value = x(ends);
end

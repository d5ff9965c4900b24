function y = mad (x, opt, dim)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (opt), opt = 0; end
  if nargin < 3, dim = find (size (x) != 1, 1); if isempty (dim), dim = 1; end, end
  if opt == 0
    y = mean (abs (x - mean (x, dim)), dim);
  else
    y = median (abs (x - median (x, dim)), dim);
  end
end

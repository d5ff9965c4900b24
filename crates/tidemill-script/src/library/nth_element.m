function y = nth_element (x, n, dim)
  if nargin < 2, print_usage (); end
  if ! (isnumeric (x) || islogical (x)), error ("nth_element: wrong type argument '%s'", class (x)); end
  if nargin < 3, dim = find (size (x) > 1, 1); end
  if isempty (dim), dim = 1; end
  s = sort (x, dim);
  at = repmat ({":"}, 1, ndims (x)); at{dim} = n;
  y = s(at{:});
end

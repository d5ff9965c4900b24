function r = ranks (x, dim, kind)
  if nargin < 1, print_usage (); end
  if nargin < 3, kind = 0; end
  if ischar (kind), kind = find (strcmpi (kind, {"fractional", "competition", "modified", "ordinal", "dense"})) - 1; end
  if isempty (kind), error ("ranks: unknown RANKTYPE"); end
  if nargin < 2 || isempty (dim), dim = find (size (x) > 1, 1); end
  if isempty (dim), dim = 1; end
  if ! (isnumeric (x) || islogical (x)), error ("ranks: X must be a numeric vector or matrix"); end
  if ! (isscalar (dim) && dim == fix (dim) && dim > 0), error ("ranks: DIM must be an integer and a valid dimension"); end
  turn = [dim, 1:dim-1, dim+1:max(dim, ndims (x))];
  x = permute (gather (x), turn);
  turned = size (x);
  x = reshape (x, turned(1), []);
  r = zeros (size (x));
  for j = 1:columns (x)
    [sorted, order] = sort (x(:,j));
    begins = [true; sorted(2:end) != sorted(1:end-1)](1:rows (x));
    run = cumsum (begins);
    at = find (begins);
    less = at(run) - 1;
    equal = diff ([at; rows(x) + 1])(run);
    switch kind
      case 0, ranked = less + (equal + 1) / 2;
      case 1, ranked = less + 1;
      case 2, ranked = less + equal;
      case 3, ranked = (1:rows (x)).';
      otherwise, ranked = run;
    end
    r(order,j) = ranked;
  end
  r = ipermute (reshape (r, turned), turn);
end

function r = ranks (x, dim, kind)
  if nargin < 1, print_usage (); end
  if nargin < 3, kind = 0; end
  if ischar (kind), kind = find (strcmpi (kind, {"fractional", "competition", "modified", "ordinal", "dense"})) - 1; end
  if isempty (kind), error ("ranks: unknown RANKTYPE"); end
  if nargin < 2 || isempty (dim), dim = find (size (x) > 1, 1); end
  if isempty (dim), dim = 1; end
  if ! (isnumeric (x) || islogical (x)), error ("ranks: X must be a numeric vector or matrix"); end
  if ! (isscalar (dim) && dim == fix (dim) && dim > 0), error ("ranks: DIM must be an integer and a valid dimension"); end
  if dim == 2, r = ranks (x.', 1, kind).'; return; end
  r = zeros (size (x));
  for j = 1:columns (x)
    for i = 1:rows (x)
      less = sum (x(:,j) < x(i,j)); equal = sum (x(:,j) == x(i,j));
      switch kind
        case 0, r(i,j) = less + (equal + 1) / 2;
        case 1, r(i,j) = less + 1;
        case 2, r(i,j) = less + equal;
        case 3, r(i,j) = less + sum (x(1:i,j) == x(i,j));
        otherwise, r(i,j) = numel (unique (x(x(:,j) < x(i,j),j))) + 1;
      end
    end
  end
end

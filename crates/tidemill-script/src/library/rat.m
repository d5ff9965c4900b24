function [n, d] = rat (x, tol)
  if nargin < 1, print_usage (); end
  if ! isfloat (x) || iscomplex (x), error ("rat: X must be a single or double array"); end
  y = x(:);
  if nargin < 2, tol = 1e-6 * norm (y(! isinf (y) & ! isnan (y)), 1); end
  if ! (isnumeric (tol) && isscalar (tol) && (nargin < 2 || tol > 0)), error ("rat: TOL must be a numeric scalar > 0"); end
  count = numel (y);
  below = zeros (count, 1);
  above = ones (count, 1);
  den = ones (count, 1);
  num = round (y);
  rest = y - num;
  steps = num;
  while true
    left = find (isfinite (y) & rest != 0 & abs (y - num ./ den) >= tol);
    if isempty (left), break, end
    flip = 1 ./ rest(left);
    step = round (flip);
    rest(left) = flip - step;
    before = num(left);
    num(left) = num(left) .* step + above(left);
    above(left) = before;
    before = den(left);
    den(left) = den(left) .* step + below(left);
    below(left) = before;
    steps(:,end+1) = NaN;
    steps(left,end) = step;
  end
  if nargout > 1
    num(isinf (y)) = sign (y(isinf (y)));
    den(isinf (y)) = 0;
    negative = den < 0;
    n = reshape (ifelse_sign (num, negative), size (x));
    d = reshape (abs (den), size (x));
    return
  end
  lines = cell (count, 1);
  for i = 1:count
    text = sprintf ("%d", steps(i,1));
    row = steps(i,2:end);
    row = row(! isnan (row));
    for k = 1:numel (row)
      if k == numel (row) && row(k) >= 0
        text = [text sprintf(" + 1/%d", row(k))];
      else
        text = [text sprintf(" + 1/(%d", row(k))];
      end
    end
    closing = numel (row) - (numel (row) > 0 && row(end) >= 0);
    lines{i} = [text repmat(")", 1, closing)];
  end
  n = char (lines);
end

function num = ifelse_sign (num, negative)
  num(negative) = -num(negative);
end

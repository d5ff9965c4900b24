function a = accumdim (subs, values, dim, n, fcn, fill)
  if nargin < 2, print_usage (); end
  if ! isvector (subs), error ("accumdim: SUBS must be a vector of indices"); end
  if nargin < 3 || isempty (dim), dim = find (size (values) != 1, 1); if isempty (dim), dim = 1; end, end
  if nargin < 4 || isempty (n), n = 0; end
  if nargin < 5 || isempty (fcn), fcn = @(x, d) sum (x, d); fixed = true; else, fixed = false; end
  if nargin < 6 || isempty (fill), fill = 0; end
  if numel (subs) != size (values, dim), error ("accumdim: dimension mismatch"); end
  if n > 0 && n < max (subs(:)), error ("accumdim: N index out of range"); end
  n = max ([n; subs(:)]);
  order = 1:max (ndims (values), dim);
  order([1, dim]) = order([dim, 1]);
  values = permute (values, order);
  dims = size (values);
  values = reshape (values, dims(1), []);
  a = zeros (n, columns (values), underlyingType (values));
  a(:) = fill;
  [subs, at] = sort (gather (subs)(:));
  first = find ([true; diff(subs) != 0]);
  last = [first(2:end) - 1; numel(subs)];
  if fixed && isfloat (values)
    % All sums at once: of columns that stand below each other.
    many = columns (values);
    place = subs + (0:many - 1) * n;
    sums = accumarray (place(:), values(at,:)(:), [n * many, 1]);
    a(subs(first),:) = reshape (sums, n, many)(subs(first),:);
  else
    for k = 1:numel (first)
      here = values(at(first(k):last(k)),:);
      if fixed
        a(subs(first(k)),:) = fcn (here, 1);
      else
        for c = 1:columns (here), a(subs(first(k)),c) = fcn (here(:,c)); end
      end
    end
  end
  dims(1) = n;
  a = ipermute (reshape (a, dims), order);
end

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
  for k = unique (subs(:))'
    here = values(subs == k,:);
    if fixed
      a(k,:) = fcn (here, 1);
    else
      for c = 1:columns (here), a(k,c) = fcn (here(:,c)); end
    end
  end
  dims(1) = n;
  a = ipermute (reshape (a, dims), order);
end

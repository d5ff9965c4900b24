function out = join (texts, delimiter, dim)
  % Along the last dimension that is not 1.
  if nargin < 1, print_usage (); end
  if nargin < 2, delimiter = " "; end
  if isnumeric (delimiter), dim = delimiter; delimiter = " "; elseif nargin < 3, dim = find (size (texts) != 1, 1, "last"); end
  if ischar (texts), out = texts; return; end
  if ! iscellstr (texts), error ("join: the first argument must be a cell array of texts"); end
  if isempty (dim), out = texts; return; end
  order = [dim, 1:dim-1, dim+1:ndims(texts)];
  shape = size (texts);
  texts = reshape (permute (texts, order), size (texts, dim), []);
  out = cell (1, columns (texts));
  for k = 1:columns (texts), out{k} = strjoin (texts(:,k).', delimiter); end
  shape(dim) = 1;
  out = ipermute (reshape (out, shape(order)), order);
end

function [counts, at] = hist (y, x, scale)
  % How many elements are nearest to each of some centres, or of X equal classes; as shares of SCALE if that is given.
  if nargin < 1, print_usage (); end
  if nargout == 0, figure (); return; end
  if isrow (y), y = y(:); end
  if ! isfloat (y), y = double (y); end
  if nargin < 2 || isempty (x), x = 10; end
  finite = y(isfinite (y));
  least = min (finite(:));
  most = max (finite(:));
  if isscalar (x)
    x = double (x);
    if least == most
      at = (-floor ((x - 1) / 2):ceil ((x - 1) / 2))' + least;
    else
      width = (most - least) / x / 2;
      at = linspace (least + width, most - width, x)';
    end
  else
    at = sort (x(:));
    if ! isfloat (at), at = double (at); end
  end
  edges = [-Inf; (at(1:end-1) + at(2:end)) / 2; Inf];
  counts = zeros (numel (at), columns (y));
  for k = 1:columns (y)
    v = y(! isnan (y(:,k)),k);
    % What lies on an edge belongs to the class below it.
    class_ = numel (at) - lookup (-edges(end-1:-1:2), -v);
    counts(:,k) = accumarray (class_(:), 1, [numel(at), 1]);
  end
  if nargin > 2, counts = counts ./ sum (counts) .* scale(:).'; end
  if columns (y) == 1
    counts = counts.';
    at = at.';
  end
end

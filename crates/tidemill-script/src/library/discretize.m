function [bins, edges] = discretize (x, edges, varargin)
  % The last bin holds its right edge, too; or each its right one with IncludedEdge right.
  if nargin < 2, print_usage (); end
  right = false;
  k = find (cellfun (@(v) ischar (v) && strcmpi (v, "IncludedEdge"), varargin), 1);
  if ! isempty (k)
    right = strcmpi (varargin{k+1}, "right");
    varargin(k:k+1) = [];
  end
  if isscalar (edges)
    n = edges;
    edges = linspace (min (x(:)), max (x(:)), n + 1);
  end
  edges = edges(:).';
  n = numel (edges) - 1;
  if n < 1 || any (diff (edges) < 0), error ("discretize: EDGES must increase"); end
  bins = NaN (size (x));
  if right
    inside = x >= edges(1) & x <= edges(end);
    at = numel (edges) - lookup (-fliplr (edges), -x(inside));
    bins(inside) = max (at, 1);
  else
    inside = x >= edges(1) & x <= edges(end);
    bins(inside) = min (lookup (edges, x(inside)), n);
  end
  if ! isempty (varargin)
    values = varargin{1};
    if iscell (values)
      named = cell (size (x));
      named(isnan (bins)) = {""};
      named(! isnan (bins)) = values(bins(! isnan (bins)));
      bins = named;
    else
      numbers = NaN (size (x));
      numbers(! isnan (bins)) = values(bins(! isnan (bins)));
      bins = numbers;
    end
  end
end

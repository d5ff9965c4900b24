function [y, filled] = fillmissing (x, method, varargin)
  % By constant, previous, next, nearest or linear along a dimension.
  if nargin < 2, print_usage (); end
  if strcmpi (method, "constant")
    if isempty (varargin), error ("fillmissing: the constant is missing"); end
    constant = varargin{1};
    varargin(1) = [];
  end
  dim = find (size (x) != 1, 1);
  if isempty (dim), dim = 1; end
  ends = "extrap";
  while ! isempty (varargin)
    if isnumeric (varargin{1})
      dim = varargin{1};
      varargin(1) = [];
    elseif strcmpi (varargin{1}, "EndValues") && numel (varargin) > 1
      ends = varargin{2};
      varargin(1:2) = [];
    else
      error ("fillmissing: unknown option");
    end
  end
  filled = ismissing (x);
  y = x;
  if iscell (x)
    if ! strcmpi (method, "constant"), error ("fillmissing: of texts, only constants are filled in"); end
    if ischar (constant), constant = {constant}; end
    y(filled) = constant;
    return
  end
  order = [dim, 1:dim-1, dim+1:ndims(x)];
  turned = size (permute (x, order));
  y = reshape (permute (x, order), turned(1), []);
  lost = reshape (permute (filled, order), turned(1), []);
  if strcmpi (method, "constant") && isscalar (constant)
    y(lost) = constant;
  else
    for k = 1:columns (y)
      if any (lost(:,k))
        if strcmpi (method, "constant"), y(lost(:,k),k) = constant(k); else, y(:,k) = one_column (y(:,k), lost(:,k), method, ends); end
      end
    end
  end
  filled = filled & ! ismissing (ipermute (reshape (y, turned), order));
  y = ipermute (reshape (y, turned), order);
end
function y = one_column (y, lost, method, ends)
  known = find (! lost);
  wanted = find (lost);
  if isempty (known), return; end
  switch lower (method)
    case "previous"
      at = lookup (known, wanted);
      y(wanted(at > 0)) = y(known(at(at > 0)));
    case "next"
      at = lookup (known, wanted) + 1;
      inside = at <= numel (known);
      y(wanted(inside)) = y(known(at(inside)));
    case "nearest"
      before = max (lookup (known, wanted), 1);
      after = min (lookup (known, wanted) + 1, numel (known));
      closer = known(after) - wanted <= wanted - known(before) | known(before) > wanted;
      at = before;
      at(closer) = after(closer);
      y(wanted) = y(known(at));
    case "linear"
      if isscalar (known), y(wanted) = NaN; else, y(wanted) = interp1 (known, y(known), wanted, "linear", "extrap"); end
    otherwise
      error ("fillmissing: unknown method '%s'", method);
  end
  outer = wanted < known(1) | wanted > known(end);
  if isnumeric (ends)
    y(wanted(outer)) = ends;
  elseif strcmpi (ends, "none")
    y(wanted(outer)) = NaN;
  elseif ! strcmpi (ends, "extrap")
    y(wanted(outer)) = one_column (y, lost, ends, "extrap")(wanted(outer));
  end
end

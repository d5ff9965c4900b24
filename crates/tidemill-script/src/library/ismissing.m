function m = ismissing (a, missing)
  if nargin < 1, print_usage (); end
  if nargin > 1
    m = false (size (a));
    if iscellstr (a)
      if ischar (missing), missing = {missing}; end
      m = ismember (a, missing);
    else
      for x = missing(:).'
        if x != x, m |= isnan (a); else, m |= a == x; end
      end
    end
  elseif iscellstr (a)
    m = cellfun (@isempty, a);
  elseif ischar (a)
    m = a == " ";
  elseif isfloat (a)
    m = isnan (a);
  elseif iscell (a) || isstruct (a)
    error ("ismissing: A must be an array or a cell array of texts");
  else
    m = false (size (a));
  end
end

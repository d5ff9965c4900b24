function [r, gone] = rmmissing (a, dim)
  if nargin < 1, print_usage (); end
  lost = ismissing (a);
  if isvector (a)
    gone = lost;
    r = a(! gone);
    return;
  end
  if nargin < 2, dim = 1; end
  if dim == 1
    gone = any (lost, 2);
    r = a(! gone,:);
  elseif dim == 2
    gone = any (lost, 1);
    r = a(:,! gone);
  else
    error ("rmmissing: DIM must be 1 or 2");
  end
end

function x = standardizeMissing (x, missing)
  if nargin != 2, print_usage (); end
  lost = ismissing (x, missing);
  if iscellstr (x)
    x(lost) = {""};
  elseif ischar (x)
    x(lost) = " ";
  elseif isfloat (x)
    x(lost) = NaN;
  end
end

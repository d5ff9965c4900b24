function x = lscov (a, b, v)
  if nargin < 2, print_usage (); end
  if nargin > 2 && ! isempty (v)
    if isvector (v)
      w = sqrt (v(:));
      a = a .* w;
      b = b .* w;
    else
      l = chol (v)';
      a = l \ a;
      b = l \ b;
    end
  end
  x = a \ b;
end

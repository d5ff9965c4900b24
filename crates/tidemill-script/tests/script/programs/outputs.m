% Outputs that a function leaves without a value matter only where somebody wants them.
1;
function [a, b, c] = first_and_last ()
  a = 1; c = 3;
end
function [a, b] = second ()
  b = 5;
end
function varargout = spread (varargin)
  varargout = varargin;
end
[~, x] = second ()
[p, ~, r] = first_and_last ()
[p, ~] = first_and_last ();
f = @() first_and_last ();
[u, ~, w] = f ()
try, [p, q, r] = first_and_last (); disp ('no error'), catch, disp ('error'), end
try, [p, q] = cellfun (@(x) first_and_last (), {1}); disp ('no error'), catch, disp ('error'), end
try, c = {second()}; disp ('no error'), catch, disp ('error'), end
try, [s.a, s.b] = second (); disp ('no error'), catch, disp ('error'), end
[one, ~, three] = spread (1, 2, 3)

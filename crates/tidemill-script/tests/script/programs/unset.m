% Outputs that a function does not set: nothing is assigned unless what is missing is not wanted.
1;
function [x, y] = first (), x = 1; end
function [x, y] = second (), y = 1; end
function varargout = one (), varargout{1} = 1; end
function show (code), a = 5; b = 6; try, eval (code), catch e, disp (e.message), end, a, b, end
show ('[a, ~] = first ();')
show ('[a, b] = first ()')
show ('[a, b] = second ()')
show ('[~, b] = second ()')
show ('[a, b] = one ()')
show ('[a, b] = feval (@first)')
show ('f = @() first (); [a, b] = f ()')
show ('a = {}; [a{1:2}] = first ()')
show ('a = {}; [a{1:2}] = one ()')
show ('a = struct (); [a.x, b] = first ()')
show ('[a(5), b] = first ()')
show ('[a, b] = size ([1 2])')

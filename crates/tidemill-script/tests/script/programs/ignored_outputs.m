% Which outputs the caller wants: those that go to a tilde are not asked for.
1;
function [a, b, c] = three ()
  a = 1; b = 2; c = 3;
  printf ("%d", isargout ([1 2 3])); printf ("  %d of %d\n", sum (isargout (1:nargout)), nargout);
end
function varargout = any_number ()
  printf ("%d", isargout (1:4)); printf ("\n");
  varargout = {1, 2, 3, 4};
end
function none ()
  printf ("%d", isargout (1:2)); printf ("\n");
end
function check (k)
  try, isargout (k), catch e, disp (e.message), end
end
three ();
x = three ();
[x, y] = three ();
[~, y] = three ();
[x, ~] = three ();
[~, ~, z] = three ();
[~, y, ~] = three ();
[~, ~] = any_number ();
[x, ~, z] = any_number ();
any_number ();
none ();
h = @() three ();
[~, b] = h ();
[a, ~] = h ();
c = {};
[c{1:2}, ~] = three ();
[~, c{1:2}] = three ();
s.f = @three;
[~, b] = s.f ();
[~, b] = feval (@three);
[~, b] = cellfun (@(x) three (), {1, 2});
[~, b] = arrayfun (@(x) three (), 1:2);
x = 1 + three ();
z = {three()};
check (0)
check (1.5)
check ("a")
check ({})
check ([])
check ([1; 2])
check (true)

% Globals, persistents and closures.
1;
function r = counter (cmd)
  persistent n
  if isempty (n), n = 0; end
  if nargin > 0 && strcmp (cmd, 'reset'), n = 0; return; end
  n = n + 1;
  r = n;
end
function addto (k)
  global total history
  total += k;
  history{end+1} = k;
end
function r = memo (n)
  persistent cache = [];
  if n <= numel (cache) && cache(n) > 0
    r = cache(n); return
  end
  if n <= 2, r = 1; else r = memo (n-1) + memo (n-2); end
  cache(n) = r;
end
global total = 5
global history
history = {};
for k = 1:3, counter (); end
counter ()
counter ('reset'); counter ()
addto (3); addto (10);
total, history
arrayfun (@memo, 1:10)
memo (50)
x = 3; f = @() x; x = 4; f (), x
make_adder = @(n) @(m) n + m;
a5 = make_adder (5); a5 (10)
fs = cell (1, 3);
for k = 1:3, fs{k} = @(x) x^k; end
cellfun (@(g) g (2), fs)
compose = @(f, g) @(x) f (g (x));
h = compose (@sqrt, @abs); h (-16)
acc.count = 0; acc.inc = @(s) setfield (s, 'count', s.count + 1);
acc = acc.inc (acc); acc = acc.inc (acc); acc.count
ops = struct ('add', @(a, b) a + b, 'mul', @(a, b) a * b)
ops.add (2, 3), ops.mul (2, 3)
isglobal ('total'), exist ('total'), exist ('nope')
clear x
exist ('x')
who_free = 1;
clear -global total
exist ('total')

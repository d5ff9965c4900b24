% Signs that stand twice before or behind a variable change it.
i = 0;
while (++i < 5)
  if (i < 3), continue; end
  printf ("%d ", i);
end
disp (i)
a = []; n = 0;
a(++n) = 10; a(++n) = 20;
a, n
s.k = 3;
y = 5 - --s.k
v = [1 2 3];
w = ++v(2) + v(1)
[n ++n, n++ -1]
do, n--; until (--n < 0)
n
++n
n++
n
x = 2^++n + 2^n++
c = {++n, n--, [n++ n]}
n = 0; a = [];
a(++n) = n; a(n++ + 1) = n
a(n--) += n, n
k = 1; s = {};
s{k++} = k; s{k++}(2) = k

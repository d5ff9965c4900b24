x = 10
if x > 5
  disp('big')
else
  disp('small')
endif
for i=1:3 disp(i), endfor
while x > 8 x--; endwhile, x
switch (x) case 8 disp('eight'); endswitch
function r = sq(x) r = x^2; endfunction
sq(4)
A = [1,2;3,4]'; A
A(:)'
a.b = 'c'; a
printf("%s\n", 'tab\tq'), printf('%s\n', "tab\tq")
disp("x'y"), disp('x"y'), disp('it''s'), disp("say \"hi\"")
1:3'
[1:3]'
-2 ^ 2
2 ^ -1
!true
~[1 0]
3:-1:1
a = 5; a'
[1, 2
 3, 4]
{1, 'a'
 2, 'b'}
b = 1; b(3) = 5, b += 1
c = 'abc'; c(end:-1:1), c([1 1 1]), [c; 'def'](2, :)
d = @() disp('called'); d()
e = {@(x) x + 1, @(x) x * 2}; e{2}(5)
1e3, 1E-3, 0x1f, 1i * 1i
ans
t = true; t += 1
m = max([1 2; 3 0](:))
[~, i] = max([3 9 2])
s = sum([1 2; 3 4])(2)
z = 3; z(2, 2) = 1
x = 1; x(:, end + 1) = 2

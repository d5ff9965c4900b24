% output without semicolons of assorted statements
x.a = 1; x.b = 2
x.c(2).d = 5
y{3} = 'z'
z(2, 3) = 7
[a, b] = deal(1, 2)
[q, w] = size(ones(2, 3));
q, w
m = magic(3); m(2, :) = []
m(:, 1) = 9
c = {}; c{end+1} = 1; c(end+1) = {2}
s = 'abc'; s(5) = 'x'; double(s)
t = 1:3; t(5) = 9
t(:) = 0
t(2:3) = [5 6]
n = []; n(3) = 1
n(end+1, :) = 2
l = []; l(2, 2) = 1; l(:, :, 2) = 5
u = 5; u(3) = 1
v = 'a':'e'; v([1 3]) = 'XY'
k = eye(2); k(:) = 1:4
k(:, end+1) = [5; 6]
k(1, :) = []
r = 1:5; r([1 3 5]) = []
r(end) = []
e = []; e = [e; 1 2]; e = [e; 3 4]
f = @(x) x .^ 2; f
f(3)
g = {f, @sin}; g{1}(4)
h = f(1:3)(2)
o = ones(2, 3)(:, 2)'
A = zeros(2, 2, 2); A(:, :, 1) = [1 2; 3 4]; A
A(:, 1, :) = []
B = int8([1 2 3]); B(2) = 300
C = single(1:3); C(2) = pi
D = true(1, 3); D(2) = 5
E1 = 'str'; E1(end:-1:1)
F = {1, 2, 3}; F([1 3]) = []
F{2}.x = 'new'
G.list{2}.name = 'n'; G.list{2}
H = {}; H{2, 2} = 1
I1 = 1:5; I1(I1 > 2 & mod(I1, 2) == 1) *= 10
J = []; J(end+1).v = 1; J(end+1).v = 2; J
K = 3; K += 2; K *= 2, K -= 1; K /= 3
L = 5; L++; ++L; L
M = ~[1 0 1], !true, -[1 2]', [1 2]'.^2, 2^-1, -2^2, 2^3^2, !1 == 0, 1:3 + 1, [1 -1], [1 - 1], [1 , -1], [a' b'], [a ' b'], [1 +2], {1 -2}, [x.a' 1], [f(1) -f(2)]
if x.a, 'yes', else, 'no', end
for i = 1:2, i, end
while true, break, end
1; 2, 3;
ans
'quoted ''text''', "double \"q\" \t|", 'single \n', ["a";"b"], ['a', "b"]
1e3, 0x1F, 0b101, 1i, 2.5e-3j, .5, 5., 1E5, 1e+5
true, pi, e, Inf, -Inf, NaN, eps, i, j
{}, [], '', "", {[]}, zeros(0, 2)
3 == 3, 'a' == 'b', ~isempty([]), xor(1, 0), 1 && 0 || 1, 5 > 3 > 1
N.a.b = 1; N.a.c = {2, 3}; N
[N.a.c{:}], N.a.c{1:2}, numel(N.a.c)
% comment
# another
%{
block
%}
x = 5 % trailing
y = [1, 2, ... continued
     3]
z = {1, ...
 'two'}
s = ['a' ...
 'b']
A = [1 2
3 4]
B = [1, 2;
     3, 4;]
C = [ 1 -2
      +3 4 ]
if (1), disp('one'), end, if 0, elseif 1, disp('elif'), end
switch 'x', case {'x', 'y'}, disp('in'), otherwise, disp('out'), end
do, K--; until K < 0
K

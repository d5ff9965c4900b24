% One case a line: forms that the crossed lists of record.m do not reach.
x = 3; x += 2, x *= 4, x -= 1, x /= 19
a.b.c = 5; a.b.d = {1,2}; a
s = struct('x', {1,2,3}); s(2), size(s), [s.x]
c = cell(2,2)
z = {}; z{3} = 'q'
if [] disp('yes'), else disp('no'), end
for k = [1 2;3 4], k, end
for k = {1,'a'}, k, end
k = 0; while true, k++; if k > 3, break, end, end, k
do k--; until k < 0
switch 'abc', case {'x','abc'}, disp('hit'), otherwise, disp('miss'), end
switch 3, case 1, disp('one'), case {2,3}, disp('two or three'), end
try, error('my:id', 'value %d', 7), catch e, disp(e.identifier), disp(e.message), end
try, undefined_thing(1), catch e, disp(e.message), end
try, [1 2 3](5), catch e, disp(e.message), end
try, ones(2,3) * ones(2,3), catch e, disp(e.message), end
try, ones(2,3) + ones(3,2), catch e, disp(e.message), end
unwind_protect, disp('a'), error('boom'), unwind_protect_cleanup, disp('b'), end_unwind_protect
f = @(x, y) x + y * 2
f = @(x) x.^2 + sin(x)'; disp(func2str(f)), f(3)
a = 5; g = @() a; a = 6; g()
cellfun(@numel, {'ab','c',''})
cellfun(@(x) [x 'z'], {'ab','c'}, 'UniformOutput', false)
[a, b] = cellfun(@max, {[1 5 2],[7 3]})
arrayfun(@(x) x^2, [1 2 3])
arrayfun(@(x) {x}, [1 2])
structfun(@(v) v * 2, struct('a', 1, 'b', 2))
cellfun('isempty', {[], 1, ''})
cellfun(@(x) error('bad'), {1,2}, 'ErrorHandler', @(e, x) -x)
2^-1, 2^3^2, -2^2, [1 2 3]'.^2, 1:3==1:3, !1 == 0, -[1 2]'
[1 -2], [1 - 2], [1 , -2], [1 -2]', [1' 2'], [1 +2i]
x = [1,2 ... comment
1e3, 0x1F, 1E-2, .5, 5., 1i, 2.5e+3
'it''s', "tab\there", "quote\"", 'no\n'
true + true, class(true + true), class(single(1) + 1), class(int8(1) + 1), class('a' + 1)
5:-1:1, 1:0, 0:0.1:0.5, (1:3)', size(1:0)
isempty([]), isempty(zeros(0,3)), numel(zeros(0,3))
x.a = 1; x.('b') = 2; fieldnames(x), isfield(x, 'a'), isfield(x, {'a','q'}), x = rmfield(x, 'a')
x = int8(200), y = uint8(-5), z = int32(2.5), w = int32(3.5), v = int8(-2.5)
int32(7) / int32(2), int32(-7) / int32(2), idivide(int32(7), int32(2)), mod(-7, 3), rem(-7, 3), mod(5, 0), rem(5, 0)
5/0, -5/0, 0/0, int8(5)/int8(0), mod(-1, 3), mod(5.5, 2)
bitand(12, 10), bitor(12, 10), bitxor(12, 10), bitshift(1, 3)
floor(-2.5), ceil(-2.5), round(-2.5), fix(-2.5), round(2.5)
zeros(2,3), ones(2), eye(3), eye(2,3), zeros(0,3)
linspace(0,1,5), linspace(1,2,1), colon(1,3), repmat([1 2],2,2)
any([0 0 1]), all([1 1 0]), any([]), all([]), xor(true,false)
find([0 1 0 1]), find([0 1;1 0]), [r,c] = find([0 1;1 0]), find([0 0]), find([1 1 1], 2)
[s, i] = sort([3 1 2], 'descend'), sort({'pear','apple','fig'}), sort([3 NaN 1])
unique([3 1 2 1 3]), [u,i,j] = unique([5 5 7]), unique({'b','a','b'})
cumsum([1 2;3 4]), cumsum([1 2;3 4], 2), cumprod([1 2 3]), diff([1 4 9]), prod([])
max([1 5 3]), [m, i] = max([1 5 3]), max([1 2;3 0]), max([1 2;3 0], [], 2), max(3, [1 5]), min([])
mean([1 2 3 4]), median([3 1 2]), std([1 2 3 4]), var([1 2 3 4]), mode([1 2 2 3])
reshape(1:6, 2, 3), reshape(1:6, [], 2), permute(reshape(1:6,1,2,3), [3 2 1]), squeeze(ones(1,1,3))
fliplr([1 2 3]), flipud([1;2]), rot90([1 2;3 4]), circshift([1 2 3 4], 1), kron([1 2],[1;1])
trace([1 2;3 4]), rank([1 2;2 4]), det([1 2;3 4]), inv([2 0;0 4]), [1 2;3 4] \ [5;6]
cross([1 0 0],[0 1 0]), dot([1 2 3],[4 5 6]), norm([3 4]), cat(3,[1 2],[3 4])
isequal([1 2],[1 2]), isequal('a','a','a'), isequal(struct('a',1),struct('a',1)), isequal({1,'b'},{1,'b'})
round(1e6*polyfit([1 2 3],[2 4 6],1))/1e6, polyval([1 2 3], 2), roots([1 -3 2]), interp1([1 2 3],[4 5 6],2.5), trapz([1 2 3])
num2str(pi), num2str([1 2 3]), num2str(3), num2str(1.23456789, 4), num2str(true), num2str([1.5 2.5;3 4])
mat2str([1 2;3 4.5]), mat2str([true false]), mat2str('hi'), int2str(2.7), disp(pi), disp([1.5 2])
strcat('a', 'b ', 'c'), [ 'abc' ; 'def' ], upper('abc'), lower('ABC'), strtrim("  a b  "), blanks(3)
strsplit('a,b,c', ','), strjoin({'a','b'}, '-'), strrep('hello', 'l', 'L'), strfind('abcabc', 'bc'), regexprep('abc', 'b', 'X')
[tok, rest] = strtok('hello world'), fliplr('abc'), length('hello'), double('AZ'), char([72 105]), ['a':'e']
strcmp('a', 'a'), strcmp({'a','b'}, 'a'), strcmpi('A', 'a'), strncmp('abc', 'abd', 2), isspace('a b'), isdigit('a1')
str2num('3+4'), str2double('3.5'), str2double('abc'), str2double({'1','x'}), num2cell([1 2]), cell2mat({1 2;3 4})
[tok] = regexp('ab12', '(\w)(\d)', 'tokens'); tok{1}, regexp('ab12', '\d+', 'match'), regexp('ab12', '\d'), regexp('x=1', '(?<k>\w)=(?<v>\d)', 'names')
upper({'ab','c'}), strjust(['a ';'bb'], 'right'), dec2bin(5), bin2dec('101'), dec2hex(255), hex2dec('FF')
isa(1,'numeric'), isa(int8(1),'integer'), isa(1,'float'), isnumeric(1), ischar('a'), iscell({}), isstruct(struct()), islogical(true), isreal(1i)
nargin('size'), exist('sin'), exist('nonexistent_name'), isvarname('a1'), isvarname('1a')
primes(20), isprime(7), factor(12), gcd(12,18), lcm(4,6), factorial(5), nchoosek(5,2)
ismember(2,[1 2 3]), ismember({'a'},{'a','b'}), union([1 2],[2 3]), intersect([1 2],[2 3]), setdiff([1 2 3],2)
accumarray([1;2;1],[10;20;30]), histc([1 2 2 3],1:3), meshgrid(1:2,1:3), triu(magic(3)), tril(magic(3)), diag([1 2])
sub2ind([2 3],2,2), [r,c] = ind2sub([2 3],4), nnz([1 0 2]), fix(clock()(1)) > 2000, isrow([1 2 3]), iscolumn([1;2])
func2str(@sin), f = str2func('@(x) x+1'); f(2), feval(@plus,1,2), feval('minus',5,3), is_function_handle(@sin)
eval('y = 5;'); y, eval('bad syntax here', 'disp(''caught'')'), evalc('disp(3)')
a = 1; b = 2; [a, b] = deal(b, a), [q{1:2}] = deal(7,8)
x = 10; x(3) = 5, x(2,2) = 1, y = []; y(end+1) = 4; y(end+1) = 5
m = magic(4); m(:,2) = [], m(1,:) = [], m(:)', m(end,end), m(end)
s = 'abc'; s(2) = 'X', s(5) = 'Y'; double(s(4)), s([1 end])
c = {1,2,3}; c(2) = [], c{end+1} = 'x', c(:)', numel(c), [c{1:2}]
t = true; t(3) = true, class(t), l = [1 2 3] > 1, x = 1:3; x(l), x(logical([1 0 1]))
1e5, 100000, 123456, 1234567.89, 0.00001, 99999.5, 1e-10, [1 1e6], [0.001 1000], [1e-3 1]
[1.5 NaN Inf], [1 NaN], [1 Inf], -[1.5 2], [1e10 2.5], [1;10;100], [0.1;0.22;0.333], 1e100, [1 1e100]
x = 1:20, y = (1:20)*1.5, z = rand(3,30) > 2
3+4i, [1+2i 3.5-4i], 1i, (1+2i)*(3-1i), abs(3+4i), conj(1+2i), [1+1e5i 2]
int8([1 2;3 4]), uint8(5), [int8(100) int8(-100)], int32([1000 -5;7 88])
single(3.14159), single([1.5 2.5]), double(single(0.1)), single(1e10), format long, pi, single(pi), [pi;1], 1/3, format short
{}, cell(0,3), {[]}, {1,{2,'x'}}, {[1 2;3 4], 'abc'; @sin, true}
struct(), struct('a',{}), struct('a',{{1,2}}), s.a = [1 2 3]; s.b = 'text'; s.c.d = 1; s
ones(2,2,2), zeros(2,0,2), cat(3,[1.5 2],[3 4]), rand(2,2,2) > 2
''' ', "", '', ['a';'b'], ['ab';'cd'], {'a';'b'}
true, false, [true false], ~true, !false, true & false, true || false
a = 3, a; a, ans = 5; 7; ans, ans + 1; ans
1:3 + 1, (1:3) + 1, -1:1, 10:-3:0, 0.1:0.1:0.3, numel(0:0.1:1)
isargout(1), nargin("numel") != 0
global G; G = 5; G
x = containers_test_undefined

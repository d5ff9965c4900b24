% cell arrays of mixed things
c = {1, 'two', [3 4 5]; {6, 'seven'}, @sin, true}
class (c), size (c)
c{2,1}{2}
c(1, :)
c{1,3}(2)
c{3,1} = int8 (5)
c(:, 2) = []
c(end, :) = [];
numel (c)
d = cell (2, 2)
isempty (d{1}), iscellstr ({'a', 'b'}), iscellstr (c)
x = {}; x{end+1} = 1; x{end+1} = 'b'; x(end+1) = {3}; x
[a, b] = x{1:2}
y = [x, {4, 5}]
z = [x; {7, 8, 9}]
vertcat (x{[1 3]})
cellfun (@class, x, 'UniformOutput', false)
cellfun (@numel, {'ab', [1 2 3], {}})
[mx, ix] = cellfun (@max, {[1 5 2], [7 3]})
cellfun (@(p, q) [p q], {'a', 'b'}, {'c', 'd'}, 'UniformOutput', false)
cellfun (@(x) error ('boom'), {1, 2}, 'ErrorHandler', @(e, x) -x)
num2cell ([1 2; 3 4])
cell2mat ({1 2; 3 4})
cell2mat ({[1 2], [3]; [4 5], [6]})
for k = {1, 'x'; 2, 'y'}
  k
end
q = cell (1, 3); q(:) = {0}; q
{}
cell (0, 3)
{[]}
{zeros(0,3), '', {}}
{1+2i, -0.5, 1e10, NaN, single(2.5), uint8(200)}
{[1.5 2.5; 1e6 3], 'str', ["ab"; "cd"]}
{true, [true false], 1:0}
w = {1, {2, {3, {}}}}
isequal (w, {1, {2, {3, {}}}})
sort ({'pear', 'apple', 'fig'})
cellfun (@isempty, {[], 'a', {}, 0})
vals = cellfun (@(v) v * 2, {1, 2, 3});
vals
any (cellfun (@ischar, {1, 'a'}))
cellslices (1:4, [1 3], [2 4])
idx = cellfun (@(s) any (s == 'e'), {'pear', 'fig'})

data = {'name', 'age', 'city'; 'Ann', 31, 'Oslo'; 'Bob', 27, 'Rome'; 'Cid', 45, 'Bern'}
s = cell2struct(data(2:end, :), data(1, :), 2)
s(2)
[s.age]
ages = [s.age];
names = {s.name}
[~, idx] = sort(ages, 'descend');
sorted = s(idx);
for p = sorted'
  printf('%-5s|%3d|%s\n', p.name, p.age, p.city);
end
t = struct('id', {1, 2, 3}, 'tags', {{'a', 'b'}, {}, {'c'}})
t(1)
t(2).tags
arrayfun(@(r) numel(r.tags), t)
u = rmfield(t, 'tags')
isrow(u), size(u)
t(end+1).id = 9;
t(4)
t(2) = [];
size(t)
v.a.b.c = 5
v.a.b.d = {1, 'x', [1 2;3 4]}
v.a.e(3).f = 'deep'
v
fn = fieldnames(v.a)
isfield(v, {'a', 'z'}), isfield(v.a, 'b')
w = orderfields(struct('z', 1, 'a', 2))
x = setfield(struct(), 'q', 3)
y = getfield(v, 'a', 'b', 'c')
n = struct('m', magic(3), 'e', [], 'c', {{}}, 's', '', 'f', @(x) x.^2)
struct()
struct('a', {})
z = repmat(struct('k', 0), 2, 2)

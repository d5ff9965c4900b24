% parse CSV text held in a string
data = sprintf ('name,age,height\nAnna,31,1.68\nBob,,1.80\n"Cecil, Jr.",47,n/a\n');
lines = strsplit (strtrim (data), "\n");
header = strsplit (lines{1}, ',')
recs = struct ('name', {}, 'age', {}, 'height', {});
for i = 2:numel (lines)
  tok = regexp (lines{i}, '("[^"]*"|[^,]*)(,|$)', 'tokens');
  f = cellfun (@(t) strrep (t{1}, '"', ''), tok, 'UniformOutput', false);
  recs(i-1).name = f{1};
  recs(i-1).age = str2double (f{2});
  recs(i-1).height = str2double (f{3});
end
recs
size (recs)
recs(3)
ages = [recs.age]
mean (ages(~isnan (ages)))
tall = recs([recs.height] > 1.7);
tall.name
{recs.name}
T = [num2cell(ages); {recs.name}]'
sorted = sortrows (cell2mat (T(~isnan (ages), 1)))
[~, ix] = sort ({recs.name}); recs = recs(ix(end:-1:1));
for r = recs
  printf ('%-12s|%5.1f|%6.2f\n', r.name, r.age, r.height);
end
s = sprintf ('%d,', 1:5); s(end) = []
nums = str2num (['[' s ']'])
v = sscanf ('3 4 5', '%d')'
str2double ({'1e3', ' 42 ', 'abc', '1,000', '2+3i', '-Inf', '.5', ''})
strsplit ('a,,b', ','), strsplit ('a  b', ' ', 'CollapseDelimiters', true)
pairs = regexp ('k1=v1;k2=v2', '(\w+)=(\w+)', 'names');
pairs
[tok, rem_] = strtok ('one two three')
rest = 'a b c'; parts = {};
while ~isempty (rest)
  [t, rest] = strtok (rest);
  if ~isempty (t), parts{end+1} = t; end
end
parts

% word counts with a struct, a cell and sort
txt = ['The quick brown fox jumps over the lazy dog. The dog barks; ' ...
       'the fox, quick and clever, runs away. "Away!" said the dog.'];
words = regexp (lower (txt), '[a-z]+', 'match');
n = numel (words)
counts = struct ();
for w = words
  key = w{1};
  if isfield (counts, key)
    counts.(key)++;
  else
    counts.(key) = 1;
  end
end
names = fieldnames (counts);
vals = cellfun (@(k) counts.(k), names);
[~, order] = sortrows ([-vals, (1:numel (vals))']);
for k = order(1:6)'
  fprintf ('%-8s %2d %s\n', names{k}, vals(k), repmat ('*', 1, vals(k)));
end
[u, ~, j] = unique (words);
c = accumarray (j(:), 1)';
u(c == max (c))
lens = cellfun ('length', words);
hist_ = zeros (1, max (lens));
for l = lens, hist_(l) += 1; end
hist_
longest = words{find (lens == max (lens), 1)}
counts
strjoin (u(1:4), ', ')
any (strcmp ('fox', u)), ismember ('cat', u)
[tf, loc] = ismember ({'dog', 'zebra', 'away'}, u)
upper (txt(1:9)), fliplr ('stressed')
cellfun (@(s) [upper(s(1)) s(2:end)], u(1:3), 'UniformOutput', false)

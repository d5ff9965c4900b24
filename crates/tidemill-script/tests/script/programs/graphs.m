% Dijkstra, BFS with a cell queue, Floyd-Warshall, union-find
W = inf (6); E = [1 2 7; 1 3 9; 1 6 14; 2 3 10; 2 4 15; 3 4 11; 3 6 2; 4 5 6; 5 6 9];
for e = E', W(e(1), e(2)) = e(3); W(e(2), e(1)) = e(3); end
W(logical (eye (6))) = 0
dist = inf (1, 6); dist(1) = 0; prev = zeros (1, 6); Q = 1:6;
while ~isempty (Q)
  [~, k] = min (dist(Q)); u = Q(k); Q(k) = [];
  for v = Q(isfinite (W(u, Q)))
    alt = dist(u) + W(u, v);
    if alt < dist(v), dist(v) = alt; prev(v) = u; end
  end
end
dist, prev
path = 5; while prev(path(1)), path = [prev(path(1)), path]; end
disp (strjoin (arrayfun (@num2str, path, 'UniformOutput', false), ' -> '));
adj = {[2 3], [4], [4 5], [6], [6], []};
queue = {1}; seen = false (1, 6); seen(1) = true; order = []; level = zeros (1, 6);
while numel (queue) > 0
  u = queue{1}; queue(1) = [];
  order(end+1) = u;
  for v = adj{u}
    if ~seen(v)
      seen(v) = true; level(v) = level(u) + 1; queue{end+1} = v;
    end
  end
end
order, level
F = W;
for k = 1:6, F = min (F, F(:,k) + F(k,:)); end
F
parent = 1:6;
mst = zeros (0, 3);
for e = sortrows (E, 3)'
  a = e(1); while parent(a) ~= a, a = parent(a); end
  b = e(2); while parent(b) ~= b, b = parent(b); end
  if a ~= b, parent(a) = b; mst(end+1, :) = e'; end
end
mst, sum (mst(:, 3))
A = double (isfinite (W) & W > 0); deg = sum (A)
Lap = diag (deg) - A
round (sort (eig (Lap))' * 1e4) / 1e4
A^3
tc = (eye (6) + A)^5 > 0; all (tc(:))
% pagerank
P = A ./ sum (A); r = ones (6,1)/6; for k = 1:100, r = 0.85*P*r + 0.15/6; end, r'
sum (r)

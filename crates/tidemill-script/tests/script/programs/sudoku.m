% Sudoku by backtracking; a function with three outputs.
1;
function [ok, B, tries] = solve (B, tries)
  tries++;
  [r, c] = find (B == 0, 1);
  if isempty (r), ok = true; return; end
  br = 3*floor ((r-1)/3); bc = 3*floor ((c-1)/3);
  used = unique ([B(r,:), B(:,c)', reshape(B(br+(1:3), bc+(1:3)), 1, [])]);
  for v = setdiff (1:9, used)
    B(r,c) = v;
    [ok, S, tries] = solve (B, tries);
    if ok, B = S; return; end
  end
  ok = false;
end
B = [5 3 0 0 7 0 0 0 0
     6 0 0 1 9 5 0 0 0
     0 9 8 0 0 0 0 6 0
     8 0 0 0 6 0 0 0 3
     4 0 0 8 0 3 0 0 1
     7 0 0 0 2 0 0 0 6
     0 6 0 0 0 0 2 8 0
     0 0 0 4 1 9 0 0 5
     0 0 0 0 8 0 0 7 9];
[ok, S, n] = solve (B, 0);
ok, n
S
all (sort (S) == (1:9)')(1), isequal (sum (S), 45*ones (1,9))
for r = 1:9
  fprintf ('%d%d%d|%d%d%d|%d%d%d\n', S(r, :));
  if any (r == [3 6]), disp ('---+---+---'); end
end
blocks = mat2cell (S, [3 3 3], [3 3 3]);
cellfun (@(b) sum (b(:)), blocks)

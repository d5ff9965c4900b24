% Queens that do not attack each other, by backtracking.
1;
function sols = place (n, row, cols, sols)
  if row > n, sols(end+1, :) = cols; return; end
  for c = 1:n
    safe = true;
    for r = 1:row-1
      if cols(r) == c || abs (cols(r) - c) == row - r
        safe = false; break
      end
    end
    if safe
      cols(row) = c;
      sols = place (n, row+1, cols, sols);
    end
  end
end
s = place (6, 1, [], zeros (0, 6))
for n = 4:7, printf ("%d: %d\n", n, rows (place (n, 1, [], zeros (0, n)))); end
board = repmat ('.', 6, 6);
board(sub2ind ([6 6], 1:6, s(1,:))) = 'Q'
size (place (3, 1, [], zeros (0, 3)))
place (3, 1, [], zeros (0, 3))

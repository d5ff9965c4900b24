% The game of life on a torus, by shifts of a logical array.
G = mod (reshape (0:22499, 150, 150) .* 7919, 13) < 4;
population = zeros (1, 6);
for g = 1:6
  N = zeros (size (G));
  for a = -1:1
    for b = -1:1
      if a || b, N = N + circshift (G, [a b]); end
    end
  end
  G = (N == 3) | (G & N == 2);
  population(g) = sum (G(:));
end
population
class (G), size (G)
corner = G(1:4, 1:8)
rows_alive = find (any (G(:, 1:3), 2))(1:6)'
full = double (G); full(~G) = -1;
sum (full(:)) == 2 * population(end) - numel (G)
disp (char ('.' + (G(10:14, 10:40) > 0) * ('#' - '.')));

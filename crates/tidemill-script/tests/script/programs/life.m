% game of life with circshift; blinker, glider
G = zeros (8); G(2,3) = 1; G(3,4) = 1; G(4,2:4) = 1;
show = @(g) disp (char ('.' + (g > 0) * ('#' - '.')));
for gen = 1:4
  N = zeros (size (G));
  for dx = -1:1
    for dy = -1:1
      if dx || dy, N += circshift (circshift (G, dx, 1), dy, 2); end
    end
  end
  G = (N == 3) | (G & N == 2);
end
show (G);
class (G)
pop = sum (G(:))
K = [1 1 1; 1 0 1; 1 1 1];
N2 = conv2 (double (G), K, 'same')
H = G; H(end+1, :) = 1
[i, j] = find (G); [i, j]
sprintf ('(%d,%d) ', [i j]')
any (H, 2)'

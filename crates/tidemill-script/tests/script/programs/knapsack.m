% 0/1 knapsack, LCS, edit distance, coin change by DP
w = [2 3 4 5 9]; v = [3 4 8 8 10]; W = 20; n = numel (w);
T = zeros (n+1, W+1);
for i = 1:n
  for c = 0:W
    T(i+1, c+1) = T(i, c+1);
    if w(i) <= c
      T(i+1, c+1) = max (T(i+1, c+1), T(i, c-w(i)+1) + v(i));
    end
  end
end
T
c = W; take = false (1, n);
for i = n:-1:1
  if T(i+1, c+1) ~= T(i, c+1), take(i) = true; c -= w(i); end
end
take, find (take), v(take)
a = 'kitten'; b = 'sitting';
D = zeros (numel (a)+1, numel (b)+1); D(:,1) = 0:numel (a); D(1,:) = 0:numel (b);
for i = 1:numel (a), for j = 1:numel (b)
  D(i+1,j+1) = min ([D(i,j+1)+1, D(i+1,j)+1, D(i,j) + (a(i) ~= b(j))]);
end, end
D
printf ('distance(%s,%s)=%d\n', a, b, D(end));
X = 'AGGTAB'; Y = 'GXTXAYB'; L = zeros (numel (X)+1, numel (Y)+1);
for i = 1:numel (X), for j = 1:numel (Y)
  if X(i) == Y(j), L(i+1,j+1) = L(i,j) + 1; else L(i+1,j+1) = max (L(i,j+1), L(i+1,j)); end
end; end
i = numel (X); j = numel (Y); lcs = '';
while i > 0 && j > 0
  if X(i) == Y(j), lcs = [X(i) lcs]; i--; j--;
  elseif L(i,j+1) >= L(i+1,j), i--; else, j--; end
end
lcs
coins = [1 5 10 25]; ways = [1 zeros(1, 100)];
for k = coins, for t = k:100, ways(t+1) += ways(t-k+1); end, end
ways(101)
least = [0 inf(1, 30)];
for t = 1:30, for k = coins(coins <= t), least(t+1) = min (least(t+1), least(t-k+1) + 1); end, end
least
least(least > 3)
Inf - 5, -Inf, [1 Inf], [NaN 1.5 -Inf], [1e6 Inf], inf (2)

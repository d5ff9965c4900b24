% Recursive functions: towers, permutations, nested cells, subsets.
1;
function r = fib (n)
  if n < 2, r = n; else, r = fib (n-1) + fib (n-2); end
end
function hanoi (n, from, to, via)
  global moves
  if n == 0, return, end
  hanoi (n-1, from, via, to);
  moves(end+1, :) = [from to];
  hanoi (n-1, via, to, from);
end
function p = perms_ (v)
  n = numel (v);
  if n <= 1
    p = v;
  else
    p = [];
    for i = 1:n
      sub = perms_ (v([1:i-1 i+1:n]));
      p = [p; repmat(v(i), size (sub, 1), 1), sub];
    end
  end
end
function out = flatten (c)
  out = {};
  for i = 1:numel (c)
    if iscell (c{i})
      out = [out, flatten(c{i})];
    else
      out{end+1} = c{i};
    end
  end
end
function a = ack (m, n)
  if m == 0, a = n + 1;
  elseif n == 0, a = ack (m-1, 1);
  else a = ack (m-1, ack (m, n-1)); end
end
function d = depth (c)
  if ~iscell (c), d = 0; elseif isempty (c), d = 1; else d = 1 + max (cellfun (@depth, c)); end
end
function s = subsets (v)
  if isempty (v), s = {[]}; return; end
  r = subsets (v(2:end));
  s = [r, cellfun(@(x) [v(1) x], r, 'UniformOutput', false)];
end
arrayfun (@fib, 0:12)
global moves
moves = zeros (0, 2);
hanoi (3, 1, 3, 2);
moves
perms_ (1:3)
size (perms_ (1:5))
flatten ({1, {2, {3, 'x'}}, {}, {{{4}}}})
ack (2, 3)
depth ({1, {2, {3}}})
s = subsets ([1 2 3]);
cellfun (@mat2str, s, 'UniformOutput', false)
fact = @(f, n) ifelse_ (n);
function r = ifelse_ (n), r = prod (1:n); end
fact (fact, 5)
Y = @(n) prod (1:n);
Y (6)
gcd_ = @(a, b) gcd (a, b); gcd_ (48, 36)
nchoosek (5, 2), nchoosek (1:4, 2), perms ([1 2 3]), primes (30), factor (360)

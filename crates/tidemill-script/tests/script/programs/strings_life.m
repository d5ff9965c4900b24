% game of life, sudoku-like checks, string building
g = zeros(6); g(2, 3) = 1; g(3, 4) = 1; g(4, 2:4) = 1;
for t = 1:3
  nb = zeros(size(g));
  for dx = -1:1, for dy = -1:1, if dx || dy, nb += circshift(g, [dx dy]); end, end, end
  g = (g & (nb == 2 | nb == 3)) | (~g & nb == 3);
  disp(char(g * ('#' - '.') + '.'));
  disp('');
end
class(g), g
s = '';
for k = 1:5, s = [s sprintf('%d', k) ',']; end, s(1:end-1)
rle = @(v) {v([true diff(v) ~= 0]), diff(find([true diff(v) ~= 0 true]))};
r = rle([1 1 2 3 3 3]), r{1}, r{2}
caesar = @(s, k) char(mod(s - 'a' + k, 26) + 'a');
caesar('hello', 3), caesar(caesar('hello', 3), -3)
pal = @(s) all(s == fliplr(s)); pal('racecar'), pal('ab')
words = {'banana', 'apple', 'cherry'}; [~, i] = sort(cellfun(@numel, words)); words(i), lens = cellfun('length', words)
upper(words), cellfun(@(w) w(1), words), cellfun(@(w) w(end:-1:1), words, 'UniformOutput', false)
freq = accumarray(double('mississippi')' - 96, 1)'; find(freq), freq(freq > 0)
[tok, rem] = strtok('a b c'), isspace("a\tb c")
bin = dec2bin(0:3), bin - '0', bin2dec(bin)
x = 'The quick brown fox'; x(x == ' ') = '_', regexprep(x, '[aeiou]', '*'), numel(strfind(x, 'o')), strsplit(x, '_'){end}
vowels = sum(ismember(lower(x), 'aeiou'))
mat = ['abc'; 'def'], mat(:, 2), mat(2, :), mat', size(mat), mat(:)', mat([2 1], :)
title = @(s) regexprep(s, '(^.)', '${upper($1)}');
cellfun(@str2num, {'1', '2'}), num2cell([1 2]), ['x' num2str(5)], ["abc" 'def'], {'a', "b"}
strjust_ok = 1; repmat('-', 1, 10), [num2str(1.5) ' ' num2str(-2)], disp(['a' ; 'b'])
int2str([1.2 2.7]), sprintf('%s;', words{:}), fprintf('%s %d\n', 'abc', 5, 'de', 6), fprintf('%d: %s\n', 1, 'x'); fprintf("%5s|%-5s|\n", 'ab', 'cd')
strcmp('a', {'a', 'b'; 'c', 'a'}), any(strcmp(words, 'apple')), find(strcmp(words, 'apple')), validatestring('ap', words)
fliplr('abc'), double('a':'e'), ('a':'e'), char(97:100), 'a':2:'i', ['a':'c', 'x'], strcat('a', {'b', 'c'}, 'd'), lower('ABC') == 'abc', isequal('a', 'a'), strvcat('one', 'three')
columns('abc'), ostrsplit('a:b', ':'), mat2str(['ab'; 'cd'] == 'a'), typecast(uint8([1 0 0 0]), 'uint32'), cellfun(@class, {1, 'a', {}, @sin, true, int8(1), struct()}, 'UniformOutput', false)

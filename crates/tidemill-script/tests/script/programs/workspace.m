% Variables by their names, and a map that functions share.
1;
function note (m, word)
  % A map is a handle: its caller sees what is written here.
  if isKey (m, word), m(word) += 1; else, m(word) = 1; end
end
function report (a, b)
  global total
  persistent calls
  if isempty (calls), calls = 0; end
  calls += 1;
  total += calls;
  z = 2i;
  who
  s = whos;
  printf ('%s %d %s\n', s(end).name, s(end).bytes, s(end).class);
  printf ('[%s] [%s]\n', inputname (1), inputname (2));
end
long_variable_name = zeros (100, 20); c = {1, 'two'}; row_ = [1 2 3]; w = 'text'; flag = true; f = single (1i);
u = uint8 ([1; 2; 3]); st.a = 1; st.b = 'xyz'; fh = @sin;
global total
total = 0;
whos
whos c u st
who c* f*
report (row_, w)
report (row_, c)
disp (total)
counts = containers.Map ();
for word = strsplit ('the cat and the dog and the bird')
  note (counts, word{1});
end
for k = keys (counts), printf ('%s %d\n', k{1}, counts(k{1})); end
squares = containers.Map ('KeyType', 'double', 'ValueType', 'any');
for k = 3:-1:1, squares(k) = k ^ 2; end
disp (cell2mat (values (squares)))
nested.map = counts;
nested.map('zebra') = 26;
disp (counts.Count), disp (counts.isKey ('zebra'))
counts.remove ('zebra');
disp (nested.map.Count)
both = [counts; containers.Map({'ant', 'the'}, [5 50])];
disp (both('the')), disp (counts('the'))

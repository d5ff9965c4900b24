1;
function varargout = mv(x), for k = 1:nargout, varargout{k} = k * x; end, printf('[%d]', nargout); end
function r = chk(x), if nargin < 1, error('chk:few', 'need %d more', 1); end, validateattributes(x, {'numeric'}, {'vector', 'positive'}); r = sum(x); end
function cleanup_test(n)
  unwind_protect
    printf('start %d\n', n);
    if n > 1, error('ct:fail', 'n=%d', n); end
    printf('ok\n');
  unwind_protect_cleanup
    printf('clean %d\n', n);
  end_unwind_protect
end
function r = nested_try(k)
  r = 0;
  try
    try
      if k == 1, error('A:b', 'first'); elseif k == 2, x = [1 2](3); end
      r = 1;
    catch inner
      if strcmp(inner.identifier, 'A:b'), rethrow(inner); end
      r = 2;
    end_try_catch
  catch outer
    r = 3; disp(outer.message);
  end
end
mv(3); a = mv(3), [a, b, c] = mv(2)
c = {mv(1)}, s.x = mv(4), [s.y, s.z] = mv(1)
disp(mv(7)), y = mv(2) + mv(3)
try, chk(), catch e, disp(e.identifier), disp(e.message), end
try, chk([1 -2]), catch e, disp('bad'), end
chk([1 2 3])
cleanup_test(1); try, cleanup_test(2), catch e, disp(e.identifier), end
arrayfun(@nested_try, 0:2)
le = lasterr(); ischar(le)
try, error('id:x', 'with %s and %d', 'str', 5); catch e, fprintf('%s|%s\n', e.identifier, e.message); end
try, error('no format %d'); catch e, disp(e.message), end
try, error('trailing newline\n'); catch e, disp(e.message), end
try, error('id:only'); catch e, printf('[%s][%s]\n', e.identifier, e.message), end
try, error('id:fmt %d', 3); catch e, printf('[%s][%s]\n', e.identifier, e.message), end
try, error('has space: %d', 3); catch e, printf('[%s][%s]\n', e.identifier, e.message), end
try, x = inv('a'); catch e, disp(class(e.message)), end
try, a = [1 2 3]; a(5), catch e, disp(e.message), end
try, a(0), catch e, disp(e.message), end
try, a(1.5), catch e, disp(e.message), end
try, a(2, 2), catch e, disp(e.message), end
try, a{1}, catch e, disp(e.message), end
try, a.x, catch e, disp(e.message), end
try, undefined_thing, catch e, disp(e.message), end
try, undefined_fn(1, 2), catch e, disp(e.message), end
try, [1 2; 3], catch e, disp(e.message), end
try, [1 2] + [1 2 3], catch e, disp(e.message), end
try, ones(2, 3) * ones(2, 3), catch e, disp(e.message), end
try, strcat(1), catch e, disp('strcat'), end
try, cell2mat({1, 'a'}), catch e, disp(e.message), end
try, str2func(1), catch e, disp(e.message), end
try, feval(5), catch e, disp('feval'), end
try, s = struct('a'); catch e, disp(e.message), end
try, s = struct('a', {1, 2}, 'b', {1, 2, 3}); catch e, disp(e.message), end
try, fieldnames(5), catch e, disp('fn'), end
try, x = 1; x(3, :) = [1 2]; catch e, disp(e.message), end
try, x = 1:3; x([1 2]) = [1 2 3]; catch e, disp(e.message), end
try, x = eye(2); x(:) = 1:3; catch e, disp(e.message), end
try, x = 1:3; x(1, 2, 3, 4), catch e, disp(e.message), end
try, zeros(2)(:, 3), catch e, disp(e.message), end
try, q = {1, 2}; q{3}, catch e, disp(e.message), end
try, reshape(1:6, 4, 2), catch e, disp(e.message), end
try, cat(1, {1}, struct('a', 1)), catch e, disp('cat'), end
try, num2cell(), catch e, disp('usage'), end
try, error(struct('message', 'sm', 'identifier', 'a:b')), catch e, disp(e.identifier), end
try, print_usage(), catch e, disp('pu'), end
try, x = containers.Map(); x('k'), catch e, disp(e.message), end
try, if {}, end, catch e, disp(e.message), end
try, while 'a' == [1 2 3], end, disp('w'), catch e, disp(e.message), end
try, for i = 1:3, if i == 2, error('loop:err', 'i=%d', i), end, end, catch e, disp(e.message), end, i
try, evalc('error("in evalc")'), catch e, disp(e.message), end
try, cellfun(@(x) [x x], {1, 2}), catch e, disp(e.message), end
try, arrayfun(@(x) 'ab', 1:2), catch e, disp(e.message), end
try, cellfun(@(x, y) x, {1, 2}, {1}), catch e, disp(e.message), end
try, ones(2)(end+1), catch e, disp(e.message), end
try, str2double(), catch e, disp('sd'), end
try, mat2cell(1:4, 1, [2 3]), catch e, disp(e.message), end
try, a = 1; a{2} = 3; catch e, disp(e.message), end
try, a = {}; a(1).x = 3; catch e, disp(e.message), end, a
try, f = @(x) x; f.a, catch e, disp(e.message), end
try, f(1, 2), catch e, disp(e.message), end
try, strrep(1, 2, 3), catch e, disp(e.message), end
try, regexprep('a', '(', 'b'), catch e, disp('re'), end
try, nonexist.field = 1; disp(nonexist), catch e, disp(e.message), end
try, [a, b] = deal(1, 2, 3), catch e, disp(e.message), end
try, [q, w] = size_one(1), catch e, disp(e.message), end
try, chol([1 2; 3 -4]), catch e, disp(e.message), end
try, int8(1) + int16(1), catch e, disp(e.message), end
try, bitand(1, -1), catch e, disp('ba'), end
try, 1(2), catch e, disp(e.message), end
try, factorial(-1), catch e, disp('fact'), end
try, nchoosek(2, 3), catch e, disp('nck'), end
try, str2func('@(x'), catch e, disp('s2f'), end
try, eval('1 +'), catch e, disp('parse'), end
try, xx = 1; xx(:, :, 2) = [1 2]; catch e, disp(e.message), end
try, x = 5; x(-1) = 2; catch e, disp(e.message), end
try, x = 1:3; x(1, 5) = []; catch e, disp(e.message), end
try, c = {1, 2}; c{:}.a, catch e, disp(e.message), end
try, ones(1, 2){1}, catch e, disp(e.message), end
try, error('Octave:some-id', 'msg\twith tab'), catch e, disp(e.message), end
try, nargin('nonexistent_fn'), catch e, disp(e.message), end
for k=1:3
  try
    unwind_protect
      error('x');
    unwind_protect_cleanup
      disp('cleanup'); if k==2, continue, end
    end
  catch e
    disp(e.message);
  end
end

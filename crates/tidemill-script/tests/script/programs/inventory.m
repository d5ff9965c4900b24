1;
% bank account, inventory, table reports with struct arrays
function db = add_item(db, varargin)
  p = inputParser; p.FunctionName = 'add_item';
  p.addRequired('name', @ischar); p.addRequired('qty', @isnumeric);
  p.addParameter('price', 1, @(x) x > 0); p.addParameter('tags', {}, @iscell);
  p.parse(varargin{:});
  r = p.Results;
  if isempty(db), db = r; else db(end+1) = orderfields(r, db); end
end
db = [];
db = add_item(db, 'bolt', 100, 'price', 0.25);
db = add_item(db, 'nut', 200, 'tags', {'m4', 'steel'});
db = add_item(db, 'gear', 3, 'price', 12.5, 'tags', {'big'});
try, db = add_item(db, 5, 3); catch e, disp(e.message), end
try, db = add_item(db, 'x', 3, 'price', -1); catch e, disp(e.message), end
try, db = add_item(db, 'x', 3, 'colour', -1); catch e, disp(e.message), end
size(db), db(2), fieldnames(db)'
fprintf('%-8s %5s %8s\n', 'name', 'qty', 'price'); fprintf('%s\n', repmat('-', 1, 23));
arrayfun(@(r) fprintf('%-8s %5d %8.2f\n', r.name, r.qty, r.price), db);
total = sum([db.qty] .* [db.price])
[~, k] = sort({db.name}); {db(k).name}
cheap = db([db.price] < 5); numel(cheap), {cheap.name}
[db.sold] = deal(0); db(1).sold = 5; [db.sold]
s = arrayfun(@(r) struct('n', r.name, 'v', r.qty * r.price), db)
c = squeeze(struct2cell(s)), t = cell2struct(c, {'label', 'value'}, 1)
by = struct(); for r = db, for tg = r.tags, by.(tg{1}) = r.name; end, end, by
isfield(by, {'m4', 'zzz'}), db = rmfield(db, 'sold'); isfield(db, 'sold')
m = containers.Map({db.name}, {db.qty}); m.keys(), cell2mat(m.values()), m('bolt') -= 1; m('bolt')
nested.level1.level2(3).val = 'deep'; nested.level1.level2(2).val = 1:3; nested, nested.level1.level2(3), arrayfun(@(x) isempty(x.val), nested.level1.level2)
q = struct('a', {{1, 2, 3}}); q.a{2} = 'changed'; q, q.a(2) = []; numel(q.a)
dyn = 'field_x'; w.(dyn) = 1; w.([dyn '2']) = 2; w, for [v, k] = w, printf('%s=%d\n', k, v); end
z = struct('x', {10, 20, 30}); [z(2:3).x] = deal(0); z.x, z(2) = []; numel(z), [z.x]
isempty(struct('a', {})), numel(struct()), isrow(z), size(repmat(struct('a', 1), 2, 3)), arrayfun(@(t) t.a, repmat(struct('a', 7), 1, 3))
a.b = [1 2 3]; a.b(end+1) = 4; a.b(2) = []; a, a.c{3} = 'x'; a.c, a.d.e(2, 2) = 1; a.d.e, a = setfield(a, 'f', 5); getfield(a, 'b', {2}), isequal(a, a), a = orderfields(a)
ss = struct('k', {3, 1, 2}); [~, i] = sort([ss.k]); ss = ss(i); [ss.k], ss(end).k, ss(1) = struct('k', 100); ss(1), numfields(ss), isstruct(ss), struct2cell(ss(1)), [ss.k] = ss([3 2 1]).k; [ss.k]
merged = [ss(1), ss(3)]; size(merged), cc = {ss.k}; cc{:}, max([ss.k]), any(arrayfun(@(x) x.k == 100, ss)), substruct_ok = 1; cellfun(@(f) numel(f), fieldnames(nested))

x = {1, 'two', [3 4]}; save_ok = 1;
fn = tempname();
a = 5; b = [1 2; 3 4.5]; c = {1, 'x', {2}}; s.p = 1; s.q = 'str'; sa = struct('k', {1, 2}); z = 1 + 2i; i8 = int8([1 -2 3]); bo = true; bm = [true false]; st = 'hello'; stm = ['ab'; 'cd']; em = []; e3 = zeros(0, 3); nd = reshape(1:8, 2, 2, 2); sg = single(2.5); rg = 1:5; k = 3; fh = @(x) x * k; nh = @sin; nn = [NaN Inf -Inf]; dq = "d\nq"; ec = {}; big = int64(9007199254740993); dg = eye(2);
save('-text', fn, 'a', 'b', 'c', 's', 'sa', 'z', 'i8', 'bo', 'bm', 'st', 'stm', 'em', 'e3', 'nd', 'sg', 'rg', 'fh', 'nh', 'nn', 'dq', 'ec', 'big', 'dg');
clear a b c s sa z i8 bo bm st stm em e3 nd sg rg fh nh nn dq ec big dg k
load(fn)
a, b, c, s, sa, z, i8, bo, bm, st, stm, em, e3, nd, sg, rg, fh, nh, nn, dq, ec, big, dg
fh(2), nh(0), class(i8), class(sg), class(big), sa(2)
t = load(fn, 'a', 'st')
delete(fn);

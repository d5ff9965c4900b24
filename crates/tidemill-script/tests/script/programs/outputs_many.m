% More outputs than there are bits for, one of them neither wanted nor set.
1;
function [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32, b33, b34] = many (), b1 = 1; b2 = 2; b3 = 3; b4 = 4; b5 = 5; b6 = 6; b7 = 7; b8 = 8; b9 = 9; b10 = 10; b11 = 11; b12 = 12; b13 = 13; b14 = 14; b15 = 15; b16 = 16; b17 = 17; b18 = 18; b19 = 19; b20 = 20; b21 = 21; b22 = 22; b23 = 23; b24 = 24; b25 = 25; b26 = 26; b27 = 27; b28 = 28; b29 = 29; b30 = 30; b31 = 31; b32 = 32; b34 = 34; end
[v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31, v32, ~, w] = many (); v32, w
try, [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31, v32, u, w] = many (); catch e, disp (e.message), end

% Records what GNU Octave 7.3 makes of functions of elements: octave-cli -q functions.m > functions.txt, in this folder
warning ("off", "all");
values = {[-2.5 -1 -0.5 -0 0 0.3 1 1.5 2.5 30 400 NaN Inf -Inf], single([-2.5 -0.5 0 0.25 1.5 NaN Inf]), int8([-128 -3 0 5 127]), ...
  uint8([0 7 255]), int64([-9 9007199254740993]), uint64(18446744073709551615), true, 'az', [1+2i -3-0.5i 0.25i -2], ...
  single(2-1i), zeros(0, 3), pi, 1e10, [1e-10; -1e-10; 1e300]};
names = {"abs", "sign", "sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sec", "csc", "cot", ...
  "asin", "acos", "atan", "asec", "acsc", "acot", "sinh", "cosh", "tanh", "sech", "csch", "coth", "asinh", "acosh", "atanh", ...
  "asech", "acsch", "acoth", "floor", "ceil", "fix", "round", "real", "imag", "conj", "arg", "isnan", "isinf", "isfinite", ...
  "gamma", "lgamma", "erf", "erfc", "erfcx", "erfinv", "erfcinv", "sind", "cosd", "tand", "asind", "acosd", "atand", ...
  "deg2rad", "rad2deg", "nextpow2", "double", "single", "int8", "uint8", "int32", "int64", "uint64", "logical", "not", "uminus"};
pairs = {5, 3; -5, 3; 5, -3; 5.5, 2; -1, 3; 0, 5; 1, 0.1; 5, 0; NaN, 2; [7 -7 8], [2; -3]; int8(-7), int8(3); int8(-7), 2.6; ...
  uint8(200), 7; uint8(5), uint8(0); single(5.5), 2; int8(5), int16(3); int32([100 -100]), [7 -7]; int64(9007199254740993), 10; ...
  [1 2], [1 2 3]; zeros(0, 3), 2; 1i, 2; 12, 10; uint8(12), uint8(10); 1e10, 3; -3, 1; 2^52, 1};
functions = {"mod", "rem", "atan2", "hypot", "bitand", "bitor", "bitxor", "bitshift", "beta", "xor", "idivide", "complex", "nthroot"};
for k = 1:numel (values)
  printf ("value %s\n", show (values{k}));
end
for i = 1:numel (names)
  for k = 1:numel (values)
    try
      text = show (feval (names{i}, values{k}));
    catch err
      text = ["error " strtok(err.message, "\n")];
    end
    printf ("%s %d %s\n", names{i}, k - 1, text);
  end
end
for k = 1:rows (pairs)
  printf ("pair %s; %s\n", show (pairs{k, 1}), show (pairs{k, 2}));
end
for i = 1:numel (functions)
  for k = 1:rows (pairs)
    try
      text = show (feval (functions{i}, pairs{k, :}));
    catch err
      text = ["error " strtok(err.message, "\n")];
    end
    printf ("%s %d %s\n", functions{i}, k - 1, text);
  end
end

% Records what GNU Octave 7.3 makes of every operator on every pair of classes: octave-cli -q binary.m > binary.txt, in this folder
% A value is `class size elements`; a result names its operands by their lines.
warning ("off", "all");
values = {[-2.5 0 2 3.5], single([-2.5 0 2 3.5]), int8([-128 0 2 127]), int16([-32768 0 2 32767]), ...
  int32([-2147483648 0 2 2147483647]), int64([-9223372036854775807 0 2 9007199254740993]), uint8([0 1 2 255]), ...
  uint16([0 1 2 65535]), uint32([0 1 2 4294967295]), [uint64(18446744073709551615) 0 2 3], "a bc", ...
  logical([1 0 1 0]), [1+2i 0 -3i 2], single([1+2i 0 -3i 2]), ...
  2.5, single(-0.1), int8(3), int16(-3), int32(7), int64(9007199254740993), uint8(200), uint16(3), uint32(3), ...
  uint64(5), "b", true, 2-1i, NaN, Inf, [-1; 2], zeros(0, 4), zeros(1, 0)};
operators = {"+", "-", ".*", "./", ".^", "==", "<", "&"};
for k = 1:numel (values)
  printf ("value %s\n", show (values{k}));
end
for i = 1:numel (values)
  for j = 1:numel (values)
    if i > 14 && j > 14 && i < 28 && j < 28
      continue
    end
    a = values{i};
    b = values{j};
    for k = 1:numel (operators)
      if operators{k} == "<" && (iscomplex (a) || iscomplex (b))
        continue  % MATLAB compares real parts, Octave magnitudes.
      end
      try
        text = show (eval (["a " operators{k} " b"]));
      catch err
        text = ["error " err.message];
        if strfind (text, "not implemented")
          text = "undefined";
        end
      end
      printf ("%d %s %d %s\n", i - 1, operators{k}, j - 1, text);
    end
  end
end

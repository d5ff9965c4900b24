function text = base64_letters (bytes)
  % Bytes in base 64.
  letters = ["A":"Z", "a":"z", "0":"9", "+/"];
  lacking = mod (-numel (bytes), 3);
  groups = reshape ([bytes, zeros(1, lacking)], 3, []);
  number = [65536, 256, 1] * groups;
  digits = [floor(number / 262144); mod(floor (number / 4096), 64); mod(floor (number / 64), 64); mod(number, 64)];
  text = letters(digits(:).' + 1);
  text(end-lacking+1:end) = "=";
end

function bytes = base64_bytes (who, text)
  % The bytes that a text in base 64 spells.
  if ! ischar (text), error ("%s: first argument must be a character array", who); end
  text = text(:).';
  text(isspace (text)) = [];
  lacking = sum (text == "=");
  text(text == "=") = "A";
  places = zeros (1, 256);
  places(double (["A":"Z", "a":"z", "0":"9", "+/"]) + 1) = 1:64;
  at = places(double (text) + 1);
  known = at > 0;
  if mod (numel (text), 4) != 0 || lacking > 2 || ! all (known), error ("%s: input was not valid base64", who); end
  number = [262144, 4096, 64, 1] * reshape (at - 1, 4, []);
  bytes = uint8 ([floor(number / 65536); mod(floor (number / 256), 256); mod(number, 256)](:).');
  bytes(end-lacking+1:end) = [];
end

function s = num2hex (n, form)
  if nargin < 1, print_usage (); end
  if iscomplex (n), error ("num2hex: N must be real"); end
  if islogical (n), error ("num2hex: wrong type argument '%s'", ifelse_text (isscalar (n))); end
  if ! (isnumeric (n) || ischar (n)), error ("num2hex: N must be real"); end
  if nargin > 1 && ! strcmp (form, "cell"), error ('num2hex: CELL argument must be the string "cell"'); end
  if ischar (n), n = uint8 (n); end
  digits = "0123456789abcdef";
  width = sizeof (n) / max (1, numel (n));
  s = char (zeros (numel (n), 2 * width));
  if ! isempty (n)
    bytes = double (reshape (typecast (n(:), "uint8"), width, []))(end:-1:1,:).';
    s(:,1:2:end) = reshape (digits(floor (bytes / 16) + 1), size (bytes));
    s(:,2:2:end) = reshape (digits(mod (bytes, 16) + 1), size (bytes));
  end
  if nargin > 1, s = cellstr (s); end
end

function text = ifelse_text (scalar)
  if scalar, text = "bool"; else, text = "bool matrix"; end
end

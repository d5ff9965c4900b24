function text = polyout (c, x)
  if nargin < 1, print_usage (); end
  if nargin < 2, x = "s"; end
  n = numel (c);
  text = coefficient (c(1));
  if n > 1, text = sprintf ("%s*%s^%d", text, x, n - 1); end
  for k = 2:n
    if isreal (c) && c(k) < 0, sgn = "-"; else, sgn = "+"; end
    if isreal (c), c(k) = abs (c(k)); end
    text = sprintf ("%s %s %s", text, sgn, coefficient (c(k)));
    if k < n, text = sprintf ("%s*%s^%d", text, x, n - k); end
  end
  if nargout == 0
    disp (text);
    clear text
  end
end

function text = coefficient (x)
  text = num2str (x, 5);
  if imag (x) != 0, text = ["(" text ")"]; end
end

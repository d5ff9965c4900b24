function text = polyout (c, x)
  if nargin < 1, print_usage (); end
  if nargin < 2, x = "s"; end
  n = numel (c);
  text = num2str (c(1), 5);
  if n > 1, text = sprintf ("%s*%s^%d", text, x, n - 1); end
  for k = 2:n
    if c(k) < 0, sgn = "-"; else, sgn = "+"; end
    text = sprintf ("%s %s %s", text, sgn, num2str (abs (c(k)), 5));
    if k < n, text = sprintf ("%s*%s^%d", text, x, n - k); end
  end
  if nargout == 0
    disp (text);
    clear text
  end
end

function [c, maxsize, endian] = computer (what)
  c = "x86_64-pc-linux-gnu";
  maxsize = 2 ^ 63 - 1;
  endian = "L";
  if nargin == 1
    if ! strcmp (what, "arch"), error ('computer: "arch" is only valid argument'); end
    c = "gnu-linux-x86_64";
  elseif nargout == 0
    printf ("%s\n", c);
    clear c;
  end
end

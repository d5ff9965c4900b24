function [n, x] = colour_steps (who, args)
  % How many colours a map has, and as many numbers from 0 to 1.
  if numel (args) > 1, error ("Octave:invalid-fun-call", "Invalid call to %s", who); end
  n = 64;
  if ! isempty (args), n = args{1}; end
  if ! isscalar (n), error ("%s: argument must be a scalar", who); end
  n = max (double (n), 0);
  x = (0:n-1)' / max (n - 1, 1);
end

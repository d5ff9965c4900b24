function y = sinetone (freq, rate = 8000, sec = 1, ampl = 64)
  if nargin < 1, print_usage (); end
  if ! (isscalar (rate) && isscalar (sec)), error ("sinetone: RATE and SEC must be scalars"); end
  if isscalar (ampl), ampl = ampl * ones (size (freq)); end
  if isscalar (freq), freq = freq * ones (size (ampl)); end
  if ! (isvector (freq) && isvector (ampl) && numel (freq) == numel (ampl))
    error ("sinetone: FREQ and AMPL must be vectors of common size");
  end
  t = (1:round (rate * sec)).' / rate;
  y = ampl(:).' .* sin (2 * pi * t * freq(:).');
end

function varargout = embedded_steps (who, fcn, tspan, y0, c, a, b, e, dense, order, refine, options, varargin)
  % Steps by a pair of Runge-Kutta formulas whose difference chooses their length, by the rules of Shampine and
  % Reichelt, The MATLAB ODE Suite (1997). Between steps the solution is what the formulas' own polynomials `dense` make
  % of the slopes; where there are none, the cubic through values and slopes.
  % Parameters of the function may stand where the options would.
  if nargin > 11 && ! isempty (options) && ! isstruct (options), varargin = [{options}, varargin]; options = []; end
  if nargin < 12 || isempty (options), options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  f = @(t, y) fcn (t, y, varargin{:})(:);
  reltol = odeget (options, "RelTol", 1e-3);
  abstol = odeget (options, "AbsTol", 1e-6)(:);
  t = tspan(1);
  last = tspan(end);
  forward = sign (last - t);
  longest = odeget (options, "MaxStep", abs (last - t) / 10);
  events = odeget (options, "Events", []);
  y = double (y0(:));
  n = numel (b);
  k = zeros (numel (y), n);
  k(:,1) = f (t, y);
  kept = odeget (options, "NonNegative", []);
  if any (kept > numel (y)) || any (kept < 1), error ("%s: NonNegative must name components of the solution", who); end
  steps = 0; failed = 0; calls = 1;
  refine = odeget (options, "Refine", refine);
  fastest = norm (k(:,1) ./ max (abs (y), abstol / reltol), Inf) / (0.8 * reltol ^ (1 / order));
  h = odeget (options, "InitialStep", min (abs (tspan(2) - t), 1 / fastest));
  has_failed = false;
  listed = numel (tspan) > 2;
  times = t;
  values = y.';
  next = 2;
  if ! isempty (events), before = signs_of (events, t, y); end
  hit = zeros (0, 1); hit_y = zeros (0, numel (y)); hit_i = zeros (0, 1);
  ended = false;
  while (last - t) * forward > 0 && ! ended
    h = min (h, longest);
    % The last one is a little longer, rather than one more that is very short.
    if 1.1 * h >= abs (last - t), h = abs (last - t); end
    if h < 16 * eps (t)
      warning ("integrate_adaptive:unexpected_termination", "%s: the step became too small at t = %g", who, t);
      break
    end
    s = forward * h;
    for i = 2:n, k(:,i) = f (t + c(i) * s, y + s * (k(:,1:i-1) * a(i,1:i-1)')); end
    calls += n - 1;
    new = y + s * (k * b');
    other = new - s * (k * e');
    new(kept) = abs (new(kept));
    other(kept) = abs (other(kept));
    bad = max (abs (new - other) ./ max (abstol, reltol * max (abs (y), abs (new))));
    factor = 0.8 * bad ^ (-1 / order);
    if ! (bad <= 1)
      failed++;
      if has_failed || isnan (factor), h /= 2; else, h *= max (0.1, factor); end
      has_failed = true;
    else
      steps++;
      tn = t + s;
      if (last - tn) * forward <= 0 || abs (last - tn) < 2 * eps (last), tn = last; end
      if ! isempty (events)
        [after, stop, way] = events (tn, new);
        after = after(:);
        crossed = find (sign (before) != sign (after) & before != 0 & (way(:) == 0 | sign (after - before) == way(:)));
        if ! isempty (crossed)
          i = crossed(1);
          lo = 0; hi = 1;
          for bisection = 1:60
            mid = (lo + hi) / 2;
            g = signs_of (events, t + mid * (tn - t), between (mid, tn - t, y, new, k, dense, kept))(i);
            if sign (g) == sign (before(i)), lo = mid; else, hi = mid; end
          end
          te = t + hi * (tn - t);
          ye = between (hi, tn - t, y, new, k, dense, kept);
          hit(end+1,1) = te; hit_y(end+1,:) = ye.'; hit_i(end+1,1) = i;
          if stop(i), ended = true; tn = te; new = ye; end
        end
        before = after;
      end
      if listed
        while next <= numel (tspan) && (tspan(next) - tn) * forward <= 0
          theta = (tspan(next) - t) / (tn - t);
          times(end+1,1) = tspan(next);
          values(end+1,:) = between (theta, tn - t, y, new, k, dense, kept).';
          next++;
        end
        if ended && times(end) != tn, times(end+1,1) = tn; values(end+1,:) = new.'; end
      else
        for r = 1:refine-1
          times(end+1,1) = t + r / refine * (tn - t);
          values(end+1,:) = between (r / refine, tn - t, y, new, k, dense, kept).';
        end
        times(end+1,1) = tn;
        values(end+1,:) = new.';
      end
      t = tn;
      y = new;
      k(:,1) = k(:,n);
      if ! has_failed, h *= min (5, factor); end
      has_failed = false;
    end
  end
  told = ! strcmp (odeget (options, "Stats", "off"), "off");
  if told
    printf ("Number of successful steps: %d\n", steps);
    printf ("Number of failed attempts:  %d\n", failed);
    printf ("Number of function calls:   %d\n", calls);
  end
  if nargout == 1
    got = struct ();
    got.x = times.'; got.y = values.'; got.solver = who;
    if told
      got.stats = struct ("nsteps", steps, "nfailed", failed, "nfevals", calls, "npds", 0, "ndecomps", 0, "nlinsols", 0);
    end
    if ! isempty (events), got.xe = hit.'; got.ye = hit_y.'; got.ie = hit_i; end
    varargout{1} = got;
  else
    varargout = {times, values, hit, hit_y, hit_i};
  end
end
% At `theta` of a step of length `s`.
function y = between (theta, s, y0, y1, k, dense, kept)
  if isempty (dense)
    y = (1 - theta) * y0 + theta * y1 + theta * (theta - 1) * ((1 - 2*theta) * (y1 - y0) + (theta - 1) * s * k(:,1) + theta * s * k(:,end));
  else
    y = y0 + s * (k * (dense * theta .^ (1:columns (dense))'));
  end
  y(kept) = max (y(kept), 0);
end
% The functions whose zeros are events.
function value = signs_of (events, t, y)
  [value, ~, ~] = events (t, y);
  value = value(:);
end

function [x, fval, info, output] = fminsearch (fcn, x0, options, varargin)
  % The simplex of Nelder and Mead.
  if nargin == 1 && isstruct (fcn)
    problem = fcn;
    if ! all (isfield (problem, {"objective", "x0"})), error ("fminsearch: PROBLEM must have the fields objective and x0"); end
    [fcn, x0, options] = deal (problem.objective, problem.x0, struct ());
    if isfield (problem, "options"), options = problem.options; end
  elseif nargin < 2
    print_usage ();
  elseif nargin < 3
    options = struct ();
  end
  if isempty (options), options = struct (); end
  if ischar (fcn), fcn = str2func (fcn); end
  tolx = optimget (options, "TolX", 1e-4);
  tolf = optimget (options, "TolFun", 1e-4);
  n = numel (x0);
  limit = optimget (options, "MaxIter", 200 * n);
  calls_max = optimget (options, "MaxFunEvals", 200 * n);
  f = @(x) fcn (reshape (x, size (x0)), varargin{:});
  if strcmpi (optimget (options, "FunValCheck", "off"), "on"), f = @(x) checked (f (x)); end
  s = repmat (x0(:), 1, n + 1);
  for k = 1:n
    if s(k,k+1) != 0, s(k,k+1) *= 1.05; else, s(k,k+1) = 0.00025; end
  end
  v = zeros (1, n + 1);
  for k = 1:n+1, v(k) = f (s(:,k)); end
  calls = n + 1;
  iterations = 0;
  info = 0;
  while iterations < limit && calls < calls_max
    [v, order] = sort (v);
    s = s(:,order);
    if max (abs (v - v(1))) <= tolf && max (max (abs (s - s(:,1)))) <= tolx, info = 1; break; end
    iterations++;
    middle = mean (s(:,1:n), 2);
    r = 2 * middle - s(:,end);
    fr = f (r); calls++;
    if fr < v(1)
      e = 3 * middle - 2 * s(:,end);
      fe = f (e); calls++;
      if fe < fr, s(:,end) = e; v(end) = fe; else, s(:,end) = r; v(end) = fr; end
      continue
    elseif fr < v(n)
      s(:,end) = r; v(end) = fr;
      continue
    end
    if fr < v(end), c = 1.5 * middle - 0.5 * s(:,end); bound = fr; else, c = 0.5 * middle + 0.5 * s(:,end); bound = v(end); end
    fc = f (c); calls++;
    if fc < bound || fc == bound && fr < v(end)
      s(:,end) = c; v(end) = fc;
    else
      for k = 2:n+1
        s(:,k) = (s(:,1) + s(:,k)) / 2;
        v(k) = f (s(:,k));
      end
      calls += n;
    end
  end
  [fval, k] = min (v);
  x = reshape (s(:,k), size (x0));
  output = struct ("iterations", iterations, "funcCount", calls, "algorithm", "Nelder-Mead simplex direct search", "message", "");
end
function v = checked (v)
  if isnan (v), error ("fminsearch: NaN value encountered"); end
  if isinf (v), error ("fminsearch: Inf value encountered"); end
end

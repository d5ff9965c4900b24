function [x, state, message] = lsode (fcn, x0, t, t_crit)
  if nargin < 3, print_usage (); end
  if iscell (fcn), fcn = fcn{1}; end
  if ischar (fcn), fcn = str2func (fcn); end
  x0 = x0(:);
  x = zeros (numel (t), numel (x0));
  x(1,:) = x0.';
  options = odeset ("RelTol", 1e-9, "AbsTol", 1e-10);
  for k = 2:numel (t)
    [~, y] = ode45 (@(s, v) reshape (fcn (v, s), [], 1), [t(k-1), t(k)], x(k-1,:).', options);
    x(k,:) = y(end,:);
  end
  state = 2;
  message = "successful exit";
end

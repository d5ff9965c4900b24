1;
% Gradients of ordinary functions against central differences of the same functions on plain arrays. Prints a line for
% each function: its name, whether its value, the gradient's size and the gradient agree.

function [y, g] = graded (f, x)
  y = f (x);
  g = dlgradient (y, x);
end

function check (name, f, x0)
  [y, g] = dlfeval (@graded, f, dlarray (x0));
  g = extractdata (g);
  h = 1e-5;
  n = zeros (size (x0));
  for k = 1:numel (x0)
    up = x0; up(k) = up(k) + h;
    down = x0; down(k) = down(k) - h;
    n(k) = (f (up) - f (down)) / (2 * h);
  end
  far = max (abs (g(:) - n(:)) ./ max (1, abs (n(:))));
  same = abs (extractdata (y) - f (x0)) < 1e-10 * max (1, abs (f (x0)));
  printf ('%s %d %d %d\n', name, same, isequal (size (g), size (x0)), far < 1e-6);
  if far >= 1e-6, disp (g), disp (n), end
end

function y = loop (x)
  y = x(1);
  for k = 2:numel (x)
    y = y * 0.5 + sin (x(k)) * x(k - 1);
  end
end

function y = branch (x)
  y = 0;
  for k = 1:numel (x)
    if x(k) > 0.5
      y = y + x(k) ^ 3;
    elseif abs (x(k)) < 0.1
      y = y + exp (x(k));
    else
      y = y - x(k) / 2;
    end
  end
  while y < 5
    y = 2 * y + 1;
  end
end

function y = assigned (x)
  y = zeros (3, 2);
  y(1) = x(2);
  y(:, 2) = x(1:3) .^ 2;
  y(2, :) = [x(4) * x(1), 7];
  y(3, 1) += x(1);
  y = sum (y(:) .* (1:6)');
end

function y = grown (x)
  y = [];
  for k = 1:4
    y(end + 1) = x(k) * k;
  end
  y(2) = [];
  s.part = zeros (1, 2);
  s.part(2) = y(1);
  c = {y, s};
  c{2}.part(4) = y(3);
  y = prod (c{1}) + sum (c{2}.part .^ 2);
end

function y = products (x)
  a = reshape (x, 2, 3);
  b = a' * [1 2; 3 4] * a;
  y = trace (b) + b(1, 3) * norm (x) + sum (sum (a .* a)) + dot (x, x(end:-1:1)) + det (a * a');
  s = b + eye (3);
  y = y + sum (sum (s \ [1; 2; 3])) + sum (a / s)(1) + sum (inv (s)(:)) + trace (s ^ 3) + (s ^ -2)(1, 2);
end

function y = reduced (x)
  a = reshape (x, 2, 3);
  y = mean (a(:)) + sum (max (a, [], 1)) + min (a(:)) * 2 + sum (prod (a, 2)) + var (x) + sum (cumsum (x) .^ 2);
end

function y = functions (x)
  y = sum (log (1 + x .^ 2) + sqrt (2 + x) .* tanh (x) + atan (x) ./ cosh (x) + 2 .^ x + x .^ 2.5 + abs (x - 0.3));
  y = y + sum (max (x, 0.4)) + sum (sigmoid (x)) + sum (relu (x - 0.55));
end

function y = joined (x)
  a = [x, 3; cat(2, 2 * x, x(1))];
  b = [a; ones(1, size (a, 2))];
  c = repmat (b(:, 2:3)', 2, 1);
  y = sum (c(:) .^ 2) + sum (circshift (x, 1) .* x) + sum (sort (x, 'descend') .* (1:numel (x)));
end

function y = masked (x)
  z = x .* (x > 0.5) + x(x < 0.7)(1);
  z(x > 1) = 2 * x(1);
  m = x;
  m(m < 0.35) *= 3;
  y = sum (z .^ 2) + sum (m) + numel (find (x));
  [~, i] = max (x);
  y = y * x(i);
end

function y = columns (x)
  y = 1;
  for v = reshape (x, 2, 3)
    y = y * (v(1) + v(2) ^ 2);
  end
end

function y = called (x)
  f = @(v, w) v .* w;
  each = cellfun (@(v) sum (v .^ 2), {x, x(1:2)}, 'UniformOutput', false);
  y = each{1} * each{2} + feval (f, x(1), x(2)) + bsxfun (@plus, x(3), x(4)) + called_with (x(5), x(6));
end

function y = called_with (varargin)
  y = varargin{1} - varargin{2} ^ 2;
end

x = [0.3, 0.8, 1.2, 0.05, 0.6, 0.9];
check ('loop', @loop, x);
check ('branch', @branch, x);
check ('assigned', @assigned, x);
check ('grown', @grown, x);
check ('products', @products, x);
check ('reduced', @reduced, x);
check ('functions', @functions, x);
check ('joined', @joined, x);
check ('masked', @masked, x);
check ('columns', @columns, x);
check ('called', @called, x);
check ('column', @(x) sum (x .^ 2), x');
check ('number', @(x) x ^ 3 - 1 / x, 1.5);
check ('long', @(x) sum (sin (x) .* cumsum (x)), linspace (0, 1, 40));

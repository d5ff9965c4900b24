1;
function A = gallery_like(n), A = 2*eye(n) - diag(ones(n-1,1),1) - diag(ones(n-1,1),-1); end
function dy = lorenz(t, y)
  dy = [10*(y(2)-y(1)); y(1)*(28-y(3))-y(2); y(1)*y(2)-8/3*y(3)];
end
function [t, y] = rk4(f, tspan, y0, n)
  h = diff(tspan)/n; t = linspace(tspan(1), tspan(2), n+1)'; y = zeros(n+1, numel(y0)); y(1,:) = y0(:)';
  for k = 1:n
    yk = y(k,:)';
    k1 = f(t(k), yk); k2 = f(t(k)+h/2, yk+h/2*k1); k3 = f(t(k)+h/2, yk+h/2*k2); k4 = f(t(k)+h, yk+h*k3);
    y(k+1,:) = (yk + h/6*(k1+2*k2+2*k3+k4))';
  end
end
[t, y] = rk4(@lorenz, [0 0.1], [1 1 1], 10)
[t, y] = rk4(@(t, y) -2*t*y, [0 1], 1, 4);
table = [t, y, exp(-t.^2), abs(y - exp(-t.^2))]
f = @(x) x.^3 - 2*x - 5; df = @(x) 3*x.^2 - 2;
x = 2; it = 0;
do
  dx = f(x)/df(x); x -= dx; it++;
until abs(dx) < 1e-12 || it > 50
x, it
format long, x, format
fzero(f, [2 3]), fzero(@cos, 1.5)
quad(@(x) exp(-x.^2), 0, 1), quadgk(@(x) 1./(1+x.^2), -Inf, Inf), integral(@sin, 0, pi)
[xm, fv] = fminsearch(@(x) (x(1)-1)^2 + (x(2)-2)^2, [0 0]); round(xm*1e3)/1e3
[xb, fb] = fminbnd(@(x) (x-2)^2, 0, 5)
[t, y] = ode45(@(t, y) -y, [0 1], 1); abs(y(end) - exp(-1)) < 1e-3
ode_opts = odeset('RelTol', 1e-8);
[t, y] = ode45(@(t, y) [y(2); -y(1)], [0 pi], [0; 1], ode_opts); round(y(end, :)*1e4)/1e4
heat = zeros(1, 11); heat(6) = 1;
for s = 1:5, heat(2:end-1) = heat(2:end-1) + 0.25*diff(heat, 2); end, heat
A = full(gallery_like(5))
b = ones(5,1); x = zeros(5,1);
for k = 1:200, x = x + (b - A*x)./diag(A); end, x'
[x, flag] = pcg(A, b); flag
spline([0 1 2 3], [0 1 8 27], 1.5), interp1([0 1 2], [0 1 4], 0.5, 'linear'), pchip(0:3, [0 1 4 9], 2.5)
cumprod(1:6), prod([]), factorial(5), nchoosek(5, 2), nchoosek(1:4, 2), perms([1 2 3]), primes(20), isprime(7), factor(60), gcd(12, 18), lcm(4, 6)
[f1, p1] = factor(360)

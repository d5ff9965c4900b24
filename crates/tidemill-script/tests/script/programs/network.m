% tiny neural net with backprop on XOR, deterministic weights
X = [0 0; 0 1; 1 0; 1 1]; Y = [0; 1; 1; 0];
sig = @(z) 1 ./ (1 + exp (-z)); dsig = @(a) a .* (1 - a);
W1 = [0.8 -0.4 0.5; 0.2 0.9 -0.7]; b1 = [0.1 -0.2 0.3]; W2 = [0.6; -0.5; 0.9]; b2 = -0.1; lr = 2;
loss = zeros (1, 3000);
for ep = 1:3000
  A1 = sig (X * W1 + b1);
  A2 = sig (A1 * W2 + b2);
  d2 = (A2 - Y) .* dsig (A2);
  d1 = (d2 * W2') .* dsig (A1);
  W2 -= lr * A1' * d2;  b2 -= lr * sum (d2);
  W1 -= lr * X' * d1;   b1 -= lr * sum (d1, 1);
  loss(ep) = mean ((A2 - Y).^2);
  if mod (ep, 1000) == 0, fprintf ('epoch %4d: loss %.5f\n', ep, loss(ep)); end
end
pred = round (A2)'
acc = mean (pred' == Y)
loss([1 10 100 1000])
assert (loss(end) < loss(1));
% softmax regression gradient check
W = reshape ((1:6)/10, 2, 3); x = [1; -2]; t = 2;
sm = @(z) exp (z - max (z)) / sum (exp (z - max (z)));
L = @(W) -log (sm (W' * x)(t));
p = sm (W' * x)
G = x * (p - ((1:3)' == t))';
Gn = zeros (size (W)); h = 1e-6;
for k = 1:numel (W)
  Wp = W; Wp(k) += h; Wm = W; Wm(k) -= h;
  Gn(k) = (L (Wp) - L (Wm)) / (2*h);
end
G
max (abs (G(:) - Gn(:))) < 1e-8
net = struct ('W', {{W1, W2}}, 'b', {{b1, b2}}, 'act', {{sig, @(z) max (z, 0)}});
net.W
size (net.W{1})
net.act{2} ([-1 2])
cellfun (@numel, net.W)

% A picture of bytes: grey values, a filter, edges, a histogram, saturation.
W = 120; H = 90;
img = uint8 (mod (reshape (0:(W*H*3-1), H, W, 3) * 31, 256));
size (img), class (img)
g = 0.299 * double (img(:,:,1)) + 0.587 * double (img(:,:,2)) + 0.114 * double (img(:,:,3));
printf ('mean %.4f, std %.4f\n', mean (g(:)), std (g(:)));
b = conv2 (g, ones (3) / 9, 'same');
printf ('%.4f %.4f\n', b(10, 10), sum (b(:)));
e = abs (g(:, 2:end) - g(:, 1:end-1));
printf ('%.3f\n', max (e(:)));
inverse = 255 - img;
inverse(1:2, 1:3, 1)
bright = img + 100;
max (bright(:)), min (bright(:)), class (bright)
bw = g > 128; area = sum (bw(:))
f = flipud (g); f(1, 1) == g(end, 1)
h = histc (g(:)', 0:64:256)
n = (g - min (g(:))) / (max (g(:)) - min (g(:)));
[min(n(:)) max(n(:))]
channel_means = squeeze (mean (mean (double (img), 1), 2))'
crop = img(40:42, 60:63, 2)
t = g'; size (t), t(3, 2) == g(2, 3)

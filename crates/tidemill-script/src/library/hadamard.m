function h = hadamard (n)
  if nargin != 1, print_usage (); end
  for base = [1, 12, 20, 28]
    [f, k] = log2 (n / base);
    if f == 0.5 && k >= 1, break; end
  end
  if ! (f == 0.5 && k >= 1), error ("hadamard: N must be 2^k*p, for p = 1, 12, 20 or 28"); end
  switch base
    case 1, h = 1;
    case 12, h = of_residues (11, (0:10) - (0:10)', -1);
    case 20, h = of_residues (19, (0:18) + (0:18)' + 2, 1);
    case 28, h = of_28 ();
  end
  for i = 1:k-1, h = [h, h; h, -h]; end
end
function h = of_residues (p, differences, sign_)
  % Paley's construction: by which differences are squares modulo a prime.
  squares = unique (mod ((1:p-1) .^ 2, p));
  core = repmat (-sign_, p);
  core(ismember (mod (differences, p), squares)) = sign_;
  core(mod (differences, p) == 0) = -1;
  h = [ones(1, p + 1); ones(p, 1), core];
end
function h = of_28 ()
  % Where its elements are negative, 28 bits a row.
  rows_ = {
    "0000000", "3fb8215", "5e9bca0", "6e083fa", "7641c57", "7a67381", "7d7442a"
    "4378f61", "60fba1a", "0fc5f18", "47a7266", "63964d9", "718cf86", "067e596"
    "254b6ad", "2d1f943", "2835ef4", "2aa2d2f", "5416b3d", "14b17cb", "35e29f0"
    "18ce673", "32dd16c", "592b55c", "132d8bb", "49d11b7", "1b52ace", "4cec8cd"};
  h = 1 - 2 * mod (floor (hex2dec (rows_.'(:)) ./ 2 .^ (27:-1:0)), 2);
end

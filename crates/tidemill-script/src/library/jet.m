function map = jet (varargin)
  [n, x] = colour_steps ("jet", varargin);
  if n == 0, map = zeros (0, 3); return; end
  part = ceil (n / 4);
  wave = [(1:part), repmat(part, 1, part - 1), (part:-1:1)]' / part;
  at = ceil (part / 2) - (mod (n, 4) == 1) + (1:numel (wave))';
  map = zeros (n, 3);
  for colour = 1:3
    rows_ = at + (2 - colour) * part;
    inside = rows_ >= 1 & rows_ <= n;
    map(rows_(inside),colour) = wave(inside);
  end
end

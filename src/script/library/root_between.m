function x = root_between (f, slope, below, above, varargin)
  % Where an increasing F, of places and of arguments for each of them, is 0: by Newton's steps within intervals that shrink.
  x = at = (below + above) / 2;
  left = (1:numel (x))';
  for step = 1:200
    if isempty (left), return, end
    off = f (at, varargin{:});
    above(off > 0) = at(off > 0);
    below(off < 0) = at(off < 0);
    next = between (at - off ./ slope (at, varargin{:}), below, above);
    done = off == 0 | abs (next - at) <= eps (at);
    at(off != 0) = next(off != 0);
    x(left) = at;
    go = ! done;
    [left, below, above, at] = deal (left(go), below(go), above(go), at(go));
    varargin = cellfun (@(argument) argument(go), varargin, "UniformOutput", false);
  end
end
function next = between (next, below, above)
  % Steps that leave their intervals go to the middle instead, of wide ones to the middle of the logarithms.
  astray = ! (next > below & next < above);
  middle = (below + above) / 2;
  wide = below > 0 & above > 4 * below;
  middle(wide) = sqrt (below(wide) .* above(wide));
  middle(below == 0) = above(below == 0) / 16;
  next(astray) = middle(astray);
end

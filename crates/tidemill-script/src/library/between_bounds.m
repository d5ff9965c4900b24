function [from, to] = between_bounds (who, t, first, last, inclusive)
  % Where the parts of T between FIRST and LAST begin and end: between each pair of texts, or between two positions.
  if ischar (first)
    from = []; to = []; at = 1; s = 1; e = 1;
    starts = strfind (t, first);
    if ischar (last), ends = strfind (t, last); else, ends = last; end
    while true
      while s <= numel (starts) && starts(s) < at, s++; end
      if s > numel (starts), return; end
      a = starts(s);
      begin_ = a + numel (first);
      if ischar (last)
        while e <= numel (ends) && ends(e) < begin_, e++; end
        if e > numel (ends), return; end
        b = ends(e);
        stop = b - 1;
        at = b + numel (last);
      else
        stop = last - ! inclusive;
        at = Inf;
      end
      if inclusive
        from(end+1) = a;
        if ischar (last), to(end+1) = at - 1; else, to(end+1) = stop; end
      else
        from(end+1) = begin_; to(end+1) = stop;
      end
    end
  else
    if ischar (last)
      b = strfind (t, last);
      b = b(find (b > first, 1));
      if isempty (b), from = []; to = []; return; end
      if inclusive, last = b + numel (last) - 1; else, last = b; end
    end
    if first < 1 || last > numel (t) + ! inclusive, error ("%s: positions must be within the text", who); end
    from = first + ! inclusive;
    to = last - ! inclusive;
  end
end

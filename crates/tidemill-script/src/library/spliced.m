function t = spliced (t, from, to, new)
  % NEW in place of each part of a text, in order, from FROM to TO.
  if isempty (from), return; end
  parts = cell (2, numel (from));
  first = [1, to(1:end-1) + 1];
  for k = 1:numel (from), parts{1,k} = t(first(k):from(k)-1); end
  parts(2,:) = {new};
  t = [parts{:}, t(to(end)+1:end)];
end

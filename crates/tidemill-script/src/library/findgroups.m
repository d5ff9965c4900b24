function [g, id] = findgroups (a)
  % Missing elements are in no group.
  if nargin != 1, print_usage (); end
  lost = ismissing (a);
  [id, ~, at] = unique (a(! lost));
  g = NaN (size (a));
  g(! lost) = at;
  if isrow (a), id = reshape (id, 1, []); else, id = reshape (id, [], 1); end
end

function at = findstr (s, t, overlap)
  if nargin < 2, print_usage (); end
  if nargin < 3, overlap = true; end
  if numel (t) > numel (s), [s, t] = deal (t, s); end
  if isempty (t), at = []; return; end
  at = strfind (s, t, "overlaps", logical (overlap));
end

function out = strip (text, varargin)
  if nargin < 1, print_usage (); end
  side = "both";
  letter = "";
  for k = 1:numel (varargin)
    if any (strcmpi (varargin{k}, {"left", "right", "both"})), side = lower (varargin{k}); else, letter = varargin{k}; end
  end
  out = each_text ("strip", text, @(t) one (t, side, letter));
end
function t = one (t, side, letter)
  if isempty (letter), kept = ! isspace (t); else, kept = t != letter; end
  first = 1;
  last = numel (t);
  if ! strcmp (side, "right"), first = find (kept, 1); end
  if ! strcmp (side, "left"), last = find (kept, 1, "last"); end
  if isempty (first) || isempty (last), t = ""; else, t = t(first:last); end
end

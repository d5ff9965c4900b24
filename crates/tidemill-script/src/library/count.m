function n = count (text, pattern, option, value)
  % Occurrences that do not overlap; of several patterns, all together.
  if nargin < 2, print_usage (); end
  if nargin == 4 && strcmpi (option, "IgnoreCase") && value, text = lower (text); pattern = lower (pattern); end
  if ischar (pattern), pattern = {pattern}; end
  if ischar (text), text = {text}; end
  if ! (iscellstr (text) && iscellstr (pattern)), error ("count: arguments must be texts or cell arrays of texts"); end
  pattern = pattern(! cellfun (@isempty, pattern(:)));
  n = zeros (size (text));
  if isempty (pattern), return; end
  any_of = strjoin (cellfun (@(p) regexptranslate ("escape", p), pattern(:).', "UniformOutput", false), "|");
  for k = 1:numel (text), n(k) = numel (regexp (text{k}, any_of, "start")); end
end

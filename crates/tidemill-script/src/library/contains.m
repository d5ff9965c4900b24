function answer = contains (text, pattern, option, value)
  if nargin < 2, print_usage (); end
  ignore = nargin == 4 && value;
  if ischar (pattern), pattern = {pattern}; end
  if ischar (text), text = {text}; end
  if ignore, text = lower (text); pattern = lower (pattern); end
  answer = false (size (text));
  for k = 1:numel (pattern)
    answer |= ! cellfun (@isempty, strfind (text, pattern{k}));
  end
end

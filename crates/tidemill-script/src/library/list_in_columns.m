function text = list_in_columns (list, width, prefix)
  if nargin < 1, print_usage (); end
  if nargin < 2 || isempty (width), width = 80; end
  if nargin < 3, prefix = ""; end
  list = cellstr (list);
  widest = max (cellfun (@numel, list)) + 2;
  columns_max = max (1, floor ((width - numel (prefix)) / widest));
  n = numel (list);
  height = ceil (n / columns_max);
  text = "";
  for row = 1:height
    text = [text, prefix];
    for k = row:height:n
      text = [text, list{k}];
      if k + height <= n, text = [text, blanks(widest - numel (list{k}))]; end
    end
    text = [text, "\n"];
  end
end

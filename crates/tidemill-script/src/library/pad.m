function out = pad (text, varargin)
  % To a width, or to that of the longest text, on a side, with a letter.
  if nargin < 1, print_usage (); end
  width = [];
  side = "right";
  letter = " ";
  if ! isempty (varargin) && isnumeric (varargin{1}), width = varargin{1}; varargin(1) = []; end
  for k = 1:numel (varargin)
    if any (strcmpi (varargin{k}, {"left", "right", "both"})), side = lower (varargin{k}); else, letter = varargin{k}; end
  end
  if ! (ischar (letter) && numel (letter) == 1), error ("pad: the letter must be one character"); end
  if ! (ischar (text) || iscellstr (text)), error ("pad: the first argument must be a text or a cell array of texts"); end
  if isempty (width), width = max (cellfun (@numel, cellstr (text))(:)); end
  out = each_text ("pad", text, @(t) one (t, width, side, letter));
end
function t = one (t, width, side, letter)
  n = max (width - numel (t), 0);
  switch side
    case "right", t = [t, repmat(letter, 1, n)];
    case "left", t = [repmat(letter, 1, n), t];
    case "both", t = [repmat(letter, 1, floor (n / 2)), t, repmat(letter, 1, ceil (n / 2))];
  end
end

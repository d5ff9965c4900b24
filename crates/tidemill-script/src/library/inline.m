function f = inline (text, varargin)
  if nargin < 1 || ! ischar (text), error ("inline: STR argument must be a string"); end
  if nargin > 1 && isnumeric (varargin{1})
    n = varargin{1};
    if ! isscalar (n) || n != fix (n), error ("inline: N must be an integer"); end
    if n < 0, error ("inline: N must be a positive integer"); end
  end
  if nargin > 1 && isnumeric (varargin{1})
    names = [{"x"}, arrayfun(@(k) sprintf ("P%d", k), 1:varargin{1}, "UniformOutput", false)];
  elseif nargin > 1
    names = varargin;
  else
    % Names that are not called, but for the imaginary units and constants; x where there is none.
    names = regexp (text, '(?<![\w.])[A-Za-z]\w*(?!\w*\s*\()', "match");
    names = unique (names(! ismember (names, {"i", "j", "e", "pi", "NaN", "Inf", "eps", "nan", "inf", "NA"})));
    if isempty (names), names = {"x"}; end
  end
  f = str2func (["@(" strjoin(names, ", ") ") " text]);
end

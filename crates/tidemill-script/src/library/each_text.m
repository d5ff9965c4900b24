function out = each_text (who, text, fcn)
  % FCN of a text, or of each of a cell of texts.
  if ischar (text) && rows (text) <= 1
    out = fcn (text);
  elseif iscellstr (text)
    out = cellfun (fcn, text, "UniformOutput", false);
  elseif ischar (text)
    out = char (cellfun (fcn, cellstr (text), "UniformOutput", false));
  else
    error ("%s: the first argument must be a text or a cell array of texts", who);
  end
end

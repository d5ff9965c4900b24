function out = vectorize (f)
  if nargin != 1, print_usage (); end
  is_text = ischar (f);
  if ! is_text && ! is_function_handle (f), error ("vectorize: FCN must be a string or anonymous function handle"); end
  if is_text, out = f; else, out = func2str (f); end
  out = regexprep (out, '(?<!\.)(\*\*|\*|/|\^)', '.$1');
  if ! is_text, out = str2func (out); end
end

function text = formula (f)
  % Of a function's tree: the blanks are not those that were written.
  if nargin != 1, print_usage (); end
  if ! is_function_handle (f), error ("formula: FUN must be an inline function"); end
  text = regexprep (func2str (f), '^@\([^)]*\)\s*', "");
  if ! any (text == "'" | text == '"'), text = strrep (strrep (text, ", ", "\t"), " ", ""); end
  text = strrep (text, "\t", ", ");
end

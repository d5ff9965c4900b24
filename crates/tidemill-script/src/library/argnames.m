function names = argnames (f)
  if nargin != 1, print_usage (); end
  if ! is_function_handle (f), error ("argnames: FUN must be an inline function"); end
  names = regexp (func2str (f), '^@\(([^)]*)\)', "tokens", "once");
  if isempty (names), error ("argnames: FUN must be an inline function"); end
  names = strtrim (strsplit (names{1}, ","))';
end

function yes = compare_versions (v1, v2, operator)
  if nargin != 3, print_usage (); end
  if ! (ischar (v1) && ischar (v2)), error ("compare_versions: version numbers V1 and V2 must be strings"); end
  first = str2double (strsplit (regexprep (v1, '[^0-9.].*$', ""), "."));
  second = str2double (strsplit (regexprep (v2, '[^0-9.].*$', ""), "."));
  n = max (numel (first), numel (second));
  first(end+1:n) = 0; second(end+1:n) = 0;
  k = find (first != second, 1);
  if isempty (k), order = 0; else, order = sign (first(k) - second(k)); end
  switch operator
    case "==", yes = order == 0;
    case "<", yes = order < 0;
    case "<=", yes = order <= 0;
    case ">", yes = order > 0;
    case ">=", yes = order >= 0;
    case {"!=", "~="}, yes = order != 0;
    otherwise, error ('compare_versions: the operator "%s" is not valid', operator);
  end
end

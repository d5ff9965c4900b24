function yes = compare_versions (v1, v2, operator)
  % Part by part: its number first, then the letters behind it.
  if nargin != 3, print_usage (); end
  if ! (ischar (v1) && ischar (v2)), error ("compare_versions: version numbers V1 and V2 must be strings"); end
  if rows (v1) != 1 || rows (v2) != 1, error ("compare_versions: version numbers V1 and V2 must be a single row"); end
  if ! any (isalnum (v1)), error ("compare_versions: version string V1 is not valid: %s", v1); end
  if ! any (isalnum (v2)), error ("compare_versions: version string V2 is not valid: %s", v2); end
  if ! ischar (operator), error ("compare_versions: OPERATOR must be a string"); end
  if ! any (numel (operator) == [1, 2]), error ("compare_versions: OPERATOR must be 1 or 2 characters long"); end
  first = parts (v1);
  second = parts (v2);
  n = max (rows (first), rows (second));
  first(end+1:n,1) = {0}; second(end+1:n,1) = {0};
  first(cellfun (@isempty, first)) = {""}; second(cellfun (@isempty, second)) = {""};
  order = 0;
  for k = 1:n
    order = sign (first{k,1} - second{k,1});
    if order == 0, order = in_letters (first{k,2}, second{k,2}); end
    if order != 0, break; end
  end
  switch operator
    case "==", yes = order == 0;
    case "<", yes = order < 0;
    case {"<=", "=<"}, yes = order <= 0;
    case ">", yes = order > 0;
    case {">=", "=>"}, yes = order >= 0;
    case {"!=", "~=", "!", "~"}, yes = order != 0;
    case "=", error ('compare_versions: equality OPERATOR is "==", not "="');
    case {"<>", "><"}, error ("compare_versions: OPERATOR cannot contain both greater and less than symbols");
    otherwise, error ('compare_versions: the operator "%s" is not valid', operator);
  end
end
function p = parts (version)
  words = strsplit (version, ".");
  p = cell (numel (words), 2);
  for k = 1:numel (words)
    digits = regexp (words{k}, '^\d+', "match", "once");
    p{k,1} = str2double (digits);
    % A part without a number comes before all that have one.
    if isempty (digits), p{k,1} = -1; end
    p{k,2} = words{k}(numel (digits)+1:end);
  end
end
function order = in_letters (a, b)
  n = max (numel (a), numel (b));
  a(end+1:n) = "\0"; b(end+1:n) = "\0";
  at = find (a != b, 1);
  if isempty (at), order = 0; else, order = sign (double (a(at)) - double (b(at))); end
end

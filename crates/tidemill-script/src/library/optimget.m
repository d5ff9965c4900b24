function value = optimget (options, name, default)
  if nargin < 2 || ! isstruct (options) || ! ischar (name), print_usage (); end
  if nargin < 3, default = []; end
  value = default;
  fields = fieldnames (options);
  at = find (strcmpi (name, fields), 1);
  if isempty (at)
    at = find (strncmpi (name, fields, numel (name)));
    if numel (at) > 1, error ("optimget: ambiguous option: %s", name); end
  end
  if ! isempty (at) && ! isempty (options.(fields{at})), value = options.(fields{at}); end
end

function [rest, varargout] = parseparams (params, varargin)
  if nargin < 1, print_usage (); end
  first = find (cellfun (@ischar, params), 1);
  if isempty (first), first = numel (params) + 1; end
  rest = params(1:first-1);
  given = params(first:end);
  if isempty (given), given = {}; end
  if nargin == 1, varargout = {given}; return, end
  if mod (numel (given), 2), error ("parseparams: options must be given as name-value pairs"); end
  names = varargin(1:2:end);
  varargout = varargin(2:2:end);
  for k = 1:2:numel (given)
    at = find (strcmpi (given{k}, names), 1);
    if isempty (at), error ("parseparams: unrecognized option: %s", given{k}); end
    varargout{at} = given{k+1};
  end
end

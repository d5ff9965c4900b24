function [status, message] = fail (code, varargin)
  % Whether code fails, or warns, with a message that a pattern fits; an error where it does not.
  if nargin < 1 || nargin > 3, print_usage (); end
  warns = ! isempty (varargin) && strcmp (varargin{1}, "warning");
  what = "error";
  if warns, what = "warning"; varargin(1) = []; end
  pattern = ".";
  if ! isempty (varargin), pattern = varargin{1}; end
  got = "";
  lastwarn ("");
  try
    evalin ("caller", [code ";"]);
  catch failure
    got = failure.message;
  end
  if warns, got = lastwarn (); end
  if isempty (got)
    message = sprintf ("expected %s <%s> but got none", what, pattern);
  elseif isempty (regexp (got, pattern, "once"))
    message = sprintf ("expected %s <%s>\nbut got <%s>", what, pattern, got);
  else
    message = "";
  end
  status = isempty (message);
  if nargout == 0 && ! status, error ("%s", message); end
  if nargout == 0, clear status, end
end

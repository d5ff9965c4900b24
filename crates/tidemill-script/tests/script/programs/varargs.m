% Variable arguments and outputs, options by name, errors of calls.
1;
function varargout = multi (varargin)
  printf ('nargin=%d nargout=%d\n', nargin, nargout);
  for k = 1:max (nargout, 1)
    if k <= nargin, varargout{k} = varargin{k}; else, varargout{k} = k; end
  end
end
function [s, varargout] = stats (x, varargin)
  s = sum (x);
  for k = 1:nargout-1
    varargout{k} = varargin{k} (x);
  end
end
function r = defaults (a, b, c)
  if ~exist ('b', 'var') || isempty (b), b = 10; end
  if nargin < 3, c = 'none'; end
  r = sprintf ('a=%d b=%d c=%s', a, b, c);
end
function opts = parse (varargin)
  opts = struct ('tol', 1e-6, 'method', 'newton', 'verbose', false);
  i = 1;
  while i <= numel (varargin)
    key = varargin{i};
    if ~ischar (key), error ('parse:key', 'option %d is no name', i); end
    switch lower (key)
      case 'tol', opts.tol = varargin{i+1}; i += 2;
      case {'method', 'algorithm'}
        opts.method = varargin{i+1}; i += 2;
      case 'verbose', opts.verbose = true; i++;
      otherwise
        error ('parse:unknown', 'unknown option "%s"', key);
    end
  end
end
function noret ()
  disp ('no output');
end
function [a, b, c] = three (), a = 1; b = 2; if nargout > 2, c = 3; end, end
multi (5, 6);
x = multi ()
[a, b, c] = multi ('p', {1})
[s, m, d] = stats ([1 2 3 6], @mean, @(v) v - mean (v))
defaults (1)
defaults (1, [], 'given')
parse ('tol', 1e-3, 'VERBOSE')
parse ('Algorithm', 'bisect')
try, parse ('foo', 1), catch e, disp (e.message), end
try, parse (3), catch e, disp (e.message), disp (e.identifier), end
noret
noret ();
[p, q, r] = three ()
[~, q] = three ();
q
args = {1, [], 'z'}; defaults (args{:})
try, y = noret (); catch e, disp (e.message); end
try, three (1); catch e, disp (e.message); end
try, [a, b, c, d] = three (); catch e, disp (e.message); end
f = @(varargin) numel (varargin);
f (), f (1, 2, 3)
g = @(x, varargin) x + sum ([varargin{:}]); g (1, 2, 3)
nargin ('defaults'), nargin (@parse), nargout ('three')
function n = nargin_ (varargin), n = numel (varargin); end
cellfun (@(varargin) nargin_ (varargin{:}), {1, 2}, {3, 4})
h = @plus; h (1, 2), func2str (h), func2str (g)
is_function_handle (h), str2func ('@(x) x+1') (3), feval (@min, [4 2]), feval ('max', 3, 9)

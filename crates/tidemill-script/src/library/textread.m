function varargout = textread (file, template, varargin)
  if nargin < 1, print_usage (); end
  if nargin < 2, template = "%f"; end
  fid = fopen (file, "r");
  if fid < 0, error ("textread: could not open '%s' for reading", file); end
  text = fread (fid, Inf, "char=>char").';
  fclose (fid);
  varargout = cell (1, max (nargout, 1));
  [varargout{:}] = strread (text, template, varargin{:});
end

function out = ver (package)
  out = struct ("Name", "Tidemill", "Version", version (), "Release", "", "Date", "");
  if nargin > 0 && ! any (strcmpi (package, {"tidemill", "octave"}))
    % Of what is not there; a MATLAB it is not.
    out = struct ("Name", {}, "Version", {}, "Release", {}, "Date", {});
  end
  if nargout == 0
    for k = 1:numel (out), printf ("%s %s\n", out(k).Name, out(k).Version); end
    clear out
  end
end

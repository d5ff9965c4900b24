function out = ver (varargin)
  out = struct ("Name", "Tidemill", "Version", version (), "Release", "", "Date", "");
  if nargout == 0
    printf ("%s %s\n", out.Name, out.Version);
    clear out
  end
end

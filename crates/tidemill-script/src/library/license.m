function [got, message] = license (what, feature, toggle)
  if nargin == 0
    got = "MIT OR Apache-2.0";
    return
  end
  if ! ischar (what), print_usage (); end
  message = "";
  switch lower (what)
    case "inuse"
      got = struct ("feature", "tidemill", "user", getenv ("USER"));
      if nargin > 1 && ! strcmpi (feature, "tidemill"), got = got([], []); end
      if nargout == 0
        printf ("%s\n", got.feature);
        clear got
      end
    case {"test", "checkout"}
      if nargin < 2, print_usage (); end
      got = any (strcmpi (feature, {"tidemill", "octave", "matlab"}));
      if ! got, message = sprintf ('No package named "%s" installed', feature); end
    otherwise, print_usage ();
  end
end

function yes = verLessThan (package, version)
  if nargin != 2, print_usage (); end
  if ! strcmpi (package, "Octave"), error ('verLessThan: package "%s" is not installed', package); end
  yes = compare_versions (OCTAVE_VERSION (), version, "<");
end

function run (script)
  if ! ischar (script), error ("run: SCRIPT must be a string"); end
  file = script;
  if exist (file, "file") != 2, file = [script, ".m"]; end
  if exist (file, "file") != 2, error ("run: file SCRIPT must exist and be a valid Octave scriptfile"); end
  [folder, name, ending] = fileparts (file);
  here = pwd ();
  % The script finds what lies beside it.
  if ! isempty (folder), cd (folder); end
  unwind_protect
    evalin ("caller", sprintf ("source ('%s');", strrep ([name, ending], "'", "''")));
  unwind_protect_cleanup
    if ! isempty (folder), cd (here); end
  end_unwind_protect
end

function must_be (who, args, name, good, words, how)
  % An error unless GOOD says yes to each element; WORDS hold where their number goes.
  if numel (args) != 1, error ("Octave:invalid-fun-call", "Invalid call to %s", who); end
  if isempty (name), name = "input"; end
  bad = find (! good (args{1}(:)));
  if isempty (bad), return; end
  words = sprintf (words, numel (bad));
  switch how
    case "indexes", words = sprintf ("%s: indexes %s", words, mat2str (bad(:).'));
    case "values", words = sprintf ("%s: values %s", words, mat2str (args{1}(bad)(:).'));
  end
  error ("%s must be %s", name, words);
end

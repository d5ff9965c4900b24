function [lower_, upper_] = bandwidth (a, type)
  if nargin < 1, print_usage (); end
  if ! ((isnumeric (a) || islogical (a)) && ndims (a) == 2), error ("bandwidth: A must be a 2-D numeric or logical matrix"); end
  if nargin == 2 && ! any (strcmp (type, {"lower", "upper"})), error ("bandwidth: TYPE must be \"lower\" or \"upper\""); end
  [i, j] = find (a);
  below = max ([0; i(:) - j(:)]);
  above = max ([0; j(:) - i(:)]);
  if nargin == 2
    if strcmp (type, "lower"), lower_ = below; else, lower_ = above; end
  else
    lower_ = below;
    upper_ = above;
  end
end

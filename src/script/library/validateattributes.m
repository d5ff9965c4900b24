function validateattributes (x, classes, attributes, varargin)
  if nargin < 3, print_usage (); end
  name = "input";
  who = "";
  if numel (varargin) > 0 && ischar (varargin{1}) && ! isempty (varargin{1}), who = [varargin{1}, ": "]; end
  if numel (varargin) > 1 && ! isempty (varargin{2}), name = varargin{2}; end
  if ! isempty (classes)
    fits = cellfun (@(c) isa (x, c) || strcmp (c, "numeric") && isnumeric (x), classes);
    if ! any (fits), error ("Octave:invalid-type", "%s%s must be of class:\n\n  %s\n\nbut was of class %s", who, name, strjoin (classes, "\n  "), class (x)); end
  end
  k = 1;
  while k <= numel (attributes)
    word = lower (attributes{k});
    k++;
    takes = {"size", "numel", "ncols", "nrows", "ndims", ">", ">=", "<", "<=", "diag"};
    if any (strcmp (word, takes)), v = attributes{k}; k++; end
    switch word
      case "2d", ok = ndims (x) == 2;
      case "3d", ok = ndims (x) <= 3;
      case "column", ok = iscolumn (x);
      case "row", ok = isrow (x);
      case "scalar", ok = isscalar (x);
      case "vector", ok = isvector (x) || isscalar (x);
      case "square", ok = issquare (x);
      case "nonempty", ok = ! isempty (x);
      case "nonsparse", ok = true;
      case "binary", ok = all (x(:) == 0 | x(:) == 1);
      case "even", ok = all (mod (x(:), 2) == 0);
      case "odd", ok = all (mod (x(:), 2) == 1);
      case "integer", ok = all (x(:) == fix (x(:)));
      case "real", ok = isreal (x);
      case "finite", ok = all (isfinite (x(:)));
      case "nonnan", ok = ! any (isnan (x(:)));
      case "nonnegative", ok = all (x(:) >= 0);
      case "nonzero", ok = all (x(:) != 0);
      case "positive", ok = all (x(:) > 0);
      case "decreasing", ok = all (diff (x(:)) < 0);
      case "increasing", ok = all (diff (x(:)) > 0);
      case "nondecreasing", ok = all (diff (x(:)) >= 0);
      case "nonincreasing", ok = all (diff (x(:)) <= 0);
      case "size", ok = ndims (x) == numel (v) && all (isnan (v) | size (x) == v);
      case "numel", ok = numel (x) == v;
      case "ncols", ok = columns (x) == v;
      case "nrows", ok = rows (x) == v;
      case "ndims", ok = ndims (x) == v;
      case "diag", ok = isdiag (x);
      case ">", ok = all (x(:) > v);
      case ">=", ok = all (x(:) >= v);
      case "<", ok = all (x(:) < v);
      case "<=", ok = all (x(:) <= v);
      otherwise, error ("Octave:invalid-input-arg", "validateattributes: unknown ATTRIBUTE %s", word);
    end
    if ! ok
      if any (strcmp (word, takes)) && any (word(1) == "<>")
        names = struct ("x3e", "greater than", "x3c", "less than");
        error (sprintf ("Octave:expected-%s", word), "%s%s must be %s %f", who, name, strrep (strrep (strrep (strrep (word, ">=", "greater than or equal to"), "<=", "less than or equal to"), ">", "greater than"), "<", "less than"), v);
      end
      error (sprintf ("Octave:expected-%s", word), "%s%s must be %s", who, name, word);
    end
  end
end

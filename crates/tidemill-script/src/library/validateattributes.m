function validateattributes (x, classes, attributes, varargin)
  if nargin < 3, print_usage (); end
  if ! iscellstr (classes), error ("Octave:invalid-type", "validateattributes: CLASSES must be a cell array of strings"); end
  name = "input";
  who = "";
  if numel (varargin) > 0 && ischar (varargin{1}) && ! isempty (varargin{1}), who = [varargin{1}, ": "]; end
  if numel (varargin) > 1 && ! isempty (varargin{2}), name = varargin{2}; end
  if numel (varargin) > 2 && ! isempty (varargin{3}), name = sprintf ("%s (argument #%i)", name, varargin{3}); end
  if ! isempty (classes)
    fits = cellfun (@(c) isa (x, c) || strcmp (c, "numeric") && isnumeric (x), classes);
    if ! any (fits), error ("Octave:invalid-type", "%s%s must be of class:\n\n  %s\n\nbut was of class %s", who, name, strjoin (names_of (classes), " "), class (x)); end
  end
  k = 1;
  while k <= numel (attributes)
    word = lower (attributes{k});
    k++;
    takes = {"size", "numel", "ncols", "nrows", "ndims", ">", ">=", "<", "<="};
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
      case "size", ok = ndims (x) <= numel (v) && all (isnan (v) | [size(x), ones(1, numel (v) - ndims (x))] == v);
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
      switch word
        case "size"
          what = sprintf ("be of size %s but was %s", extents (v), extents (size (x)));
        case "numel", what = sprintf ("have %d elements", v);
        case "ncols", what = sprintf ("have %d columns", v);
        case "nrows", what = sprintf ("have %d rows", v);
        case "ndims", what = sprintf ("have %d dimensions", v);
        case ">", what = sprintf ("be greater than %f", v);
        case ">=", what = sprintf ("be greater than or equal to %f", v);
        case "<", what = sprintf ("be less than %f", v);
        case "<=", what = sprintf ("be less than or equal to %f", v);
        otherwise, what = ["be " word];
      end
      error (sprintf ("Octave:%s", identifier (word)), "%s%s must %s", who, name, what);
    end
  end
end

function text = extents (v)
  text = strrep (sprintf ("%dx", v)(1:end-1), "NaN", "N");
end

% The classes that words stand for, in order, each once.
function names = names_of (classes)
  names = {};
  for k = 1:numel (classes)
    switch classes{k}
      case "float", names = [names, {"single", "double"}];
      case "numeric"
        names = [names, {"single", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}];
      otherwise, names{end+1} = classes{k};
    end
  end
  names = unique (names);
end
function id = identifier (word)
  words = {"size", "numel", "ncols", "nrows", "ndims", ">", ">=", "<", "<="};
  ids = {"incorrect-size", "incorrect-numel", "incorrect-numcols", "incorrect-numrows", "incorrect-numdims", ...
         "expected-greater", "expected-greater-equal", "expected-less", "expected-less-equal"};
  at = find (strcmp (word, words));
  if isempty (at), id = ["expected-", word]; else, id = ids{at}; end
end

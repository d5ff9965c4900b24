function [values, position] = textscan (source, template, varargin)
  if nargin < 1, print_usage (); end
  if ischar (source)
    text = source(:).';
  elseif isnumeric (source) && isscalar (source)
    text = fread (source, Inf, "char=>char").';
    if isempty (text), text = ""; end
  else
    error ("textscan: first argument must be a file id or character string");
  end
  if nargin < 2 || isempty (template), template = "%f"; end
  repeat = Inf;
  if numel (varargin) > 0 && isnumeric (varargin{1})
    if ! isempty (varargin{1}) && varargin{1} >= 0, repeat = varargin{1}; end
    varargin(1) = [];
  end
  if ! ischar (template), error ("textscan: FORMAT must be a string"); end
  options = struct ("delimiter", "", "whitespace", " \b\t", "headerlines", 0, "endofline", "", ...
                    "commentstyle", {{}}, "emptyvalue", NaN, "collectoutput", false, ...
                    "multipledelimsasone", false, "treatasempty", {{}}, "returnonerror", true, "bufsize", 0);
  if mod (numel (varargin), 2) != 0, error ("textscan: %d parameters given, but only %d values", ceil (numel (varargin) / 2), floor (numel (varargin) / 2)); end
  for k = 1:2:numel (varargin)
    name = lower (varargin{k});
    if ! isfield (options, name), error ("textscan: unrecognized option '%s'", varargin{k}); end
    options.(name) = varargin{k+1};
  end
  fields = split_template (template);
  if all (strcmp ({fields.kind}, "'")), error ("textscan: no valid format conversion specifiers found"); end
  delimiters = options.delimiter;
  if iscell (delimiters), delimiters = [delimiters{:}]; end
  delimiters = do_string_escapes (delimiters);
  blanks = do_string_escapes (options.whitespace);
  blanks(ismember (blanks, delimiters)) = [];
  text = strrep (text, "\r\n", "\n");
  ending = do_string_escapes (options.endofline);
  if ! isempty (ending) && ! strcmp (ending, "\r\n"), text = strrep (text, ending, "\n"); end
  for k = 1:options.headerlines
    at = find (text == "\n", 1);
    if isempty (at), text = ""; else, text = text(at+1:end); end
  end
  text = without_comments (text, options.commentstyle);
  [values, position] = scan (text, fields, repeat, delimiters, blanks, options);
  if options.collectoutput, values = collected (values); end
end

% The parts of a template: what each reads, how wide, of which class, and literals.
function fields = split_template (template)
  fields = struct ("kind", {}, "skip", {}, "width", {}, "set", {}, "class", {});
  k = 1;
  while k <= numel (template)
    c = template(k);
    if isspace (c)
      k++;
    elseif c == "%" && k < numel (template) && template(k+1) != "%"
      k++;
      skip = template(k) == "*";
      k += skip;
      stop = k;
      while isdigit (template(stop)), stop++; end
      width = str2double (template(k:stop-1));
      k = stop;
      [~, to] = regexp (template(k:end), '^\.\d+', "once");
      if ! isempty (to), k += to; end
      [~, to] = regexp (template(k:end), '^(?:\[\^?\]?[^\]]*\]|[a-z]\d*)', "once");
      if isempty (to), error ("textscan: bad format specifier"); end
      word = template(k:k+to-1);
      k += to;
      [class_name, known] = class_of (word);
      if ! known, error ("textscan: bad format specifier"); end
      fields(end+1) = struct ("kind", word(1), "skip", skip, "width", width, "set", word, "class", class_name);
    else
      stop = k;
      while stop <= numel (template) && template(stop) != "%" && ! isspace (template(stop)), stop++; end
      if stop == k, stop = k + 2; end
      fields(end+1) = struct ("kind", "'", "skip", true, "width", NaN, "set", template(k:stop-1), "class", "");
      k = stop;
    end
  end
end

function [name, known] = class_of (word)
  known = true;
  switch word
    case {"f", "n", "f64"}, name = "double";
    case "f32", name = "single";
    case {"d", "d32"}, name = "int32";
    case "d8", name = "int8";
    case "d16", name = "int16";
    case "d64", name = "int64";
    case {"u", "u32"}, name = "uint32";
    case "u8", name = "uint8";
    case "u16", name = "uint16";
    case "u64", name = "uint64";
    case {"s", "q", "c"}, name = "cell";
    otherwise
      name = "cell";
      known = word(1) == "[";
  end
end

function text = without_comments (text, style)
  if ischar (style)
    switch style
      case "", return
      case "shell", style = {"#"};
      case "c++", style = {"//"};
      case "matlab", style = {"%"};
      case "c", style = {"/*", "*/"};
      otherwise, style = {style};
    end
  end
  if isempty (style), return, end
  from = strfind (text, style{1});
  while ! isempty (from)
    if numel (style) > 1
      to = strfind (text(from(1):end), style{2});
      if isempty (to), to = numel (text); else, to = from(1) + to(1) + numel (style{2}) - 2; end
    else
      to = find (text(from(1):end) == "\n", 1);
      if isempty (to), to = numel (text); else, to = from(1) + to - 2; end
    end
    text(from(1):to) = [];
    from = strfind (text, style{1});
  end
end

function [values, position] = scan (text, fields, repeat, delimiters, blanks, options)
  kept = find (! [fields.skip]);
  columns = repmat ({{}}, 1, numel (kept));
  position = 1;
  count = 0;
  last = numel (text);
  spaces = false (1, 256);
  spaces(double (blanks) + 1) = true;
  breaks = spaces;
  breaks(11) = true;
  stops = breaks;
  stops(double (delimiters) + 1) = true;
  if isempty (delimiters), between = breaks; else, between = spaces; end
  row_open = false;
  while count < repeat
    position = passed (text, position, breaks);
    if position > last, break, end
    column = 0;
    failed = false;
    for f = 1:numel (fields)
      field = fields(f);
      if ! field.skip, column++; end
      if field.kind == "'"
        position = passed (text, position, between);
        n = numel (field.set);
        if position + n - 1 <= last && strcmp (text(position:position+n-1), field.set), position += n; end
        continue
      end
      if field.kind != "c", position = passed (text, position, between); end
      ended = position > last;
      [value, next, ok] = one (text, position, field, stops, breaks, delimiters, options);
      if ended && f == 1, failed = true; break, end
      if ! ok && ! ended
        failed = true;
        break
      end
      position = next;
      if ! field.skip
        if ended
          if strcmp (field.class, "cell"), break, end
          if f > 1 && isempty (delimiters), break, end
          value = options.emptyvalue;
        end
        columns{column}{end+1} = value;
      end
      position = after_delimiter (text, position, spaces, delimiters, options.multipledelimsasone, f == numel (fields));
    end
    if failed, break, end
    count++;
  end
  position = min (position, last + 1) - 1;
  values = cell (1, numel (kept));
  for k = 1:numel (kept)
    class_name = fields(kept(k)).class;
    if strcmp (class_name, "cell")
      values{k} = reshape (columns{k}, [], 1);
    elseif isempty (columns{k})
      values{k} = zeros (0, 1, class_name);
    else
      values{k} = cast (reshape ([columns{k}{:}], [], 1), class_name);
    end
  end
end

function position = passed (text, position, set)
  while position <= numel (text) && set(double (text(position)) + 1), position++; end
end

function position = after_delimiter (text, position, spaces, delimiters, many, is_last)
  if isempty (delimiters), return, end
  position = passed (text, position, spaces);
  if position <= numel (text) && any (text(position) == delimiters)
    position++;
    while many && position <= numel (text) && (any (text(position) == delimiters) || spaces(double (text(position)) + 1))
      position++;
    end
  elseif position <= numel (text) && text(position) == "\n" && is_last
    position++;
  end
end

% One value: a number, a word, so many characters, or characters of a set.
function [value, position, ok] = one (text, position, field, stops, breaks, delimiters, options)
  last = numel (text);
  ok = true;
  value = [];
  limit = last;
  if ! isnan (field.width), limit = min (last, position + field.width - 1); end
  switch field.kind
    case {"f", "n", "d", "u"}
      if position <= last && any (text(position) == [delimiters "\n"])
        value = options.emptyvalue;
        return
      end
      part = text(position:limit);
      [from, to] = regexp (part, '^[+-]?(?:nan|inf(?:inity)?|NA|(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?)', "once", "ignorecase");
      if isempty (from)
        stop = find (stops(double (part) + 1), 1);
        if isempty (stop), stop = numel (part) + 1; end
        word = part(1:stop-1);
        ok = ! isempty (word) && any (strcmp (word, options.treatasempty));
        value = options.emptyvalue;
        if ok, position += stop - 1; end
        return
      end
      word = regexprep (part(1:to), '[dD]', "e");
      value = str2double (word);
      position += to;
    case "s"
      stop = position;
      while stop <= limit && ! stops(double (text(stop)) + 1), stop++; end
      value = text(position:stop-1);
      position = stop;
    case "q"
      if position <= last && text(position) == '"'
        stop = position + 1;
        while stop <= last && (text(stop) != '"' || (stop < last && text(stop+1) == '"'))
          stop += 1 + (text(stop) == '"');
        end
        value = strrep (text(position+1:min (stop, last + 1)-1), '""', '"');
        position = stop + 1;
      else
        stop = position;
        while stop <= limit && ! stops(double (text(stop)) + 1), stop++; end
        value = text(position:stop-1);
        position = stop;
      end
    case "c"
      n = field.width;
      if isnan (n), n = 1; end
      stop = min (last, position + n - 1);
      value = text(position:stop);
      position = stop + 1;
      ok = ! isempty (value);
    otherwise
      [from, to] = regexp (text(position:limit), ["^" field.set "+"], "once");
      ok = ! isempty (from);
      if ok
        value = text(position:position+to-1);
        position += to;
      end
  end
end

% Neighbours of one class as one array.
function joined = collected (values)
  joined = {};
  for k = 1:numel (values)
    if ! isempty (joined) && strcmp (class (joined{end}), class (values{k})) && rows (joined{end}) == rows (values{k})
      joined{end} = [joined{end}, values{k}];
    else
      joined{end+1} = values{k};
    end
  end
end

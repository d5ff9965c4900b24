function [values, position] = textscan (source, template, varargin)
  if nargin < 1, print_usage (); end
  if ischar (source)
    text = source(:).';
  elseif isnumeric (source) && isscalar (source)
    try, begin = ftell (source); catch, begin = -1; end
    if begin < 0, error ("textscan: invalid stream number = %d", source); end
    text = fread (source, Inf, "char=>char").';
    if isempty (text), text = ""; end
  else
    error ("textscan: first argument must be a file id or character string");
  end
  counted = nargin > 1 && ischar (template) && isempty (template);
  if nargin < 2 || isempty (template), template = "%f"; end
  repeat = Inf;
  if numel (varargin) > 0 && isnumeric (varargin{1})
    if ! isempty (varargin{1}) && varargin{1} >= 0, repeat = varargin{1}; end
    varargin(1) = [];
  end
  if ! ischar (template), error ("textscan: FORMAT must be a string"); end
  template = strrep (template, '\n', "\n");
  options = struct ("delimiter", "", "whitespace", " \b\t", "headerlines", 0, "endofline", "", ...
                    "commentstyle", {{}}, "emptyvalue", NaN, "collectoutput", false, ...
                    "multipledelimsasone", false, "treatasempty", {{}}, "returnonerror", true, "bufsize", 0, ...
                    "expchars", "edED");
  if mod (numel (varargin), 2) != 0, error ("textscan: %d parameters given, but only %d values", ceil (numel (varargin) / 2), floor (numel (varargin) / 2)); end
  for k = 1:2:numel (varargin)
    name = lower (varargin{k});
    if ! isfield (options, name), error ("textscan: unrecognized option '%s'", name); end
    options.(name) = varargin{k+1};
  end
  fields = split_template (template);
  if all (strcmp ({fields.kind}, "'")), error ("textscan: no valid format conversion specifiers found"); end
  % Where each character that is left stood.
  whole = numel (text);
  place = 1:whole;
  [text, place] = one_for (text, place, "\r\n", "\n");
  ending = do_string_escapes (options.endofline);
  if isempty (ending) && ! any (text == "\n"), ending = "\r"; end
  if ! isempty (ending) && ! strcmp (ending, "\r\n"), [text, place] = one_for (text, place, ending, "\n"); end
  [delimiters, text, place] = one_character_each (options.delimiter, text, place);
  blanks = do_string_escapes (options.whitespace);
  % A blank that is a delimiter, too, is one however often it stands there.
  blanks(ismember (blanks, delimiters) & blanks != " ") = [];
  options.exponent = sprintf ("[%s]", regexptranslate ("escape", options.expchars));
  for k = 1:options.headerlines
    at = find (text == "\n", 1);
    if isempty (at), at = numel (text); end
    text(1:at) = [];
    place(1:at) = [];
  end
  [text, place] = without_comments (text, place, options.commentstyle);
  if counted
    if isempty (text), error ("textscan: No conversions specified"); end
    [~, ~, ~, ~, more] = regexp (text, ["^[^\n]*[^\n" regexptranslate("escape", delimiters) "]([" ...
                                       regexptranslate("escape", [delimiters " "]) "]+)(?=\n|$)"], "once");
    if ! isempty (more)
      stop = find (text == "\n", 1);
      if isempty (stop), stop = numel (text) + 1; end
      text(stop-numel (more{1}):stop-1) = [];
      place(stop-numel (more{1}):stop-1) = [];
    end
    fields = repmat (fields, 1, numbers_in_line (text, fields, delimiters, blanks, options));
  end
  [values, position] = scan (text, fields, repeat, delimiters, blanks, options);
  % What follows is left to be read.
  if position < numel (text), position = [place(1)-1, place](position+1); else, position = whole; end
  if ! ischar (source) && position < whole, fseek (source, begin + position, "bof"); end
  if options.collectoutput, values = collected (values, options.emptyvalue); end
end

% The text with one character for each occurrence of others.
function [text, place] = one_for (text, place, others, character)
  from = strfind (text, others, "overlaps", false);
  if isempty (from), return, end
  % The last of them keeps its place.
  n = numel (others);
  text(from+n-1) = character;
  gone = reshape (from(:)' + (0:n-2)', 1, []);
  text(gone) = [];
  place(gone) = [];
end

% The delimiters as characters; in the text such a character stands for those that are longer.
function [delimiters, text, place] = one_character_each (delimiters, text, place)
  if ! (ischar (delimiters) || iscellstr (delimiters))
    error ("textscan: Delimiters must be either a string or cell array of strings");
  end
  if ischar (delimiters), delimiters = do_string_escapes (delimiters); return, end
  delimiters = cellfun (@do_string_escapes, delimiters, "UniformOutput", false);
  long = cellfun (@numel, delimiters) > 1;
  for d = delimiters(long)(:)', [text, place] = one_for (text, place, d{1}, "\1"); end
  delimiters = [delimiters{! long}];
  if any (long), delimiters(end+1) = "\1"; end
end

% How many numbers the first line begins with.
function n = numbers_in_line (text, field, delimiters, blanks, options)
  stop = find (text == "\n", 1);
  if isempty (stop), stop = numel (text) + 1; end
  options.returnonerror = true;
  n = numel (scan (text(1:stop-1), field, Inf, delimiters, blanks, options){1});
  n = max (n, 1);
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

function [text, place] = without_comments (text, place, style)
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
      whole = from(1) == 1 || text(from(1)-1) == "\n";
      if isempty (to), to = numel (text); else, to = from(1) + to - 2 + whole; end
    end
    text(from(1):to) = [];
    place(from(1):to) = [];
    from = strfind (text, style{1});
  end
end

% What the fields read, again and again. A line end is a delimiter as any other.
function [values, position] = scan (text, fields, repeat, delimiters, blanks, options)
  kept = find (! [fields.skip]);
  columns = repmat ({{}}, 1, numel (kept));
  position = 1;
  count = 0;
  last = numel (text);
  many = options.multipledelimsasone;
  spaces = false (1, 256);
  spaces(double (blanks) + 1) = true;
  ends = false (1, 256);
  ends(double ([delimiters "\n"]) + 1) = true;
  stops = ends;
  if isempty (delimiters), stops |= spaces; end
  if isinf (repeat) && ! many && isempty (options.treatasempty) && ! any ([fields.skip]) && all (isnan ([fields.width])) && all (ismember ([fields.kind], "fndus"))
    [values, are_plain] = plain_values (text, fields, spaces, ends, ! isempty (delimiters));
    if are_plain
      position = last;
      return
    end
  end
  % Where the next character stands that stops a value, from each place on.
  marked = stops(double (text) + 1);
  options.next_stop = [find(marked), last + 1](cumsum ([1, marked(1:end-1)]));
  if many, position = passed (text, position, spaces | ends); end
  failed = false;
  while count < repeat && ! failed
    position = passed (text, position, spaces);
    if position > last, break, end
    column = 0;
    delimited = true;
    for f = 1:numel (fields)
      field = fields(f);
      if ! field.skip, column++; end
      position = passed (text, position, spaces);
      % The delimiter that a literal begins with was read behind the field before it.
      if field.kind == "'" && f > 1 && delimited && ends(double (field.set(1)) + 1) && numel (field.set) > 1, field.set(1) = []; end
      failed = position > last && (field.kind == "'" || ! delimited);
      if failed, break, end
      failed = position > last;
      [value, next, ok] = one (text, position, field, stops, ends, options);
      if ! ok && ! failed
        if ! options.returnonerror, error ("textscan: Read error in field %d of row %d", f, count + 1); end
        failed = true;
        break
      end
      position = next;
      if ! field.skip, columns{column}{end+1} = value; end
      if failed, break, end
      if field.kind != "'" || f == numel (fields)
        [position, delimited] = after_delimiter (text, position, spaces, ends, many);
      end
    end
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

% All values of a text of decimal numbers and words, one between each two delimiters; ARE_PLAIN is false of any other.
function [values, are_plain] = plain_values (text, fields, spaces, ends, delimited)
  values = {};
  are_plain = false;
  last_one = find (! spaces(double (text) + 1), 1, "last");
  if isempty (last_one), return, end
  if text(last_one) == "\n", text(last_one:end) = []; end
  code = double (text) + 1;
  blank_ = spaces(code);
  within = ! (blank_ | ends(code));
  solid = ends(code(! blank_));
  if isempty (solid) || delimited && any (blank_) || solid(1) || solid(end) || any (solid(1:end-1) & solid(2:end)), return, end
  begins = within & ! [false, within(1:end-1)];
  count = numel (fields);
  number = cumsum (begins);
  if mod (number(end), count) != 0, return, end
  % Numbers are of these characters alone.
  are_words = [fields.kind] == "s";
  of_number = within & ! are_words(mod (max (number, 1) - 1, count) + 1);
  digits = false (1, 256);
  digits(double ("0123456789+-.eE") + 1) = true;
  if ! all (digits(code(of_number))), return, end
  text(! within) = "\n";
  words = reshape (strsplit (text(within | [false, within(1:end-1)]), "\n")(1:number(end)), count, []).';
  values = cell (1, count);
  for k = 1:count
    values{k} = words(:,k);
    if are_words(k), continue, end
    x = str2double (words(:,k));
    if any (isnan (x)), return, end
    values{k} = cast (x, fields(k).class);
  end
  are_plain = true;
end

function position = passed (text, position, set)
  while position <= numel (text) && set(double (text(position)) + 1), position++; end
end

function [position, delimited] = after_delimiter (text, position, spaces, ends, many)
  position = passed (text, position, spaces);
  delimited = position <= numel (text) && ends(double (text(position)) + 1);
  if ! delimited, return, end
  position++;
  if many
    position = passed (text, position, spaces | ends);
    delimited = position <= numel (text);
  end
end

% One value: a number, a word, so many characters, or characters of a set.
function [value, position, ok] = one (text, position, field, stops, ends, options)
  last = numel (text);
  ok = true;
  value = [];
  limit = last;
  if ! isnan (field.width), limit = min (last, position + field.width - 1); end
  switch field.kind
    case "'"
      stop = position + numel (field.set);
      ok = stop - 1 <= last && strcmp (text(position:stop-1), field.set);
      if ok, position = stop; end
    case {"f", "n", "d", "u"}
      if position > last || ends(double (text(position)) + 1)
        value = options.emptyvalue;
        return
      end
      % What a number may take that holds a delimiter itself.
      part = text(position:min (limit, options.next_stop(position) + 200));
      stop = min (options.next_stop(position), limit + 1) - position + 1;
      if any (field.kind == "fn") && any (strcmp (part(1:stop-1), options.treatasempty))
        value = options.emptyvalue;
        position += stop - 1;
        return
      end
      form = ["^[+-]?(?:nan|inf(?:inity)?|NA|(?:\\d+\\.?\\d*|\\.\\d+)(?:" options.exponent "[+-]?\\d+)?)"];
      [from, to] = regexp (part, form, "once", "ignorecase");
      if isempty (from)
        ok = false;
        value = options.emptyvalue;
        return
      end
      value = number_of (part(1:to), options.exponent);
      position += to;
      if to < numel (part) && any (part(to+1) == "+-ij")
        [value, n] = with_imaginary (value, part(to+1:end), form, options.exponent);
        position += n;
      end
    case "s"
      stop = limit + 1;
      if position <= last, stop = min (options.next_stop(position), limit + 1); end
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
        stop = limit + 1;
        if position <= last, stop = min (options.next_stop(position), limit + 1); end
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
      wide = 200;
      do
        [from, to] = regexp (text(position:min (limit, position + wide - 1)), ["^" field.set "+"], "once");
        ok = ! isempty (from);
        goes_on = ok && to == wide && position + wide <= limit;
        wide *= 2;
      until ! goes_on
      if ok
        value = text(position:position+to-1);
        position += to;
      end
  end
end

function value = number_of (word, exponent)
  value = str2double (word);
  if isnan (value), value = str2double (regexprep (word, ["(?<=[0-9.])" exponent "(?=[-+0-9])"], "e")); end
end

% A number that an imaginary part follows, or that an i makes one; N characters more are read.
function [value, n] = with_imaginary (value, rest, form, exponent)
  n = 0;
  if any (rest(1) == "ij")
    value = complex (0, value);
    n = 1;
    return
  end
  [~, to] = regexp (rest, form, "once", "ignorecase");
  if ! isempty (to) && to < numel (rest) && any (rest(to+1) == "ij")
    value = complex (value, number_of (rest(1:to), exponent));
    n = to + 1;
  end
end

% Neighbours of one class as one array; a column that is an element short ends in what stands for an empty one.
function joined = collected (values, filling)
  joined = {};
  for k = 1:numel (values)
    column = values{k};
    if ! isempty (joined) && strcmp (class (joined{end}), class (column))
      if rows (column) < rows (joined{end})
        if iscell (column), column(rows (joined{end}),1) = {[]}; else, column(end+1:rows (joined{end}),1) = filling; end
      end
      joined{end} = [joined{end}, column];
    else
      joined{end+1} = column;
    end
  end
end

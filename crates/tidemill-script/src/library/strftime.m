function text = strftime (template, tm)
  if nargin != 2 || ! ischar (template) || ! isstruct (tm), print_usage (); end
  text = "";
  k = 1;
  while k <= numel (template)
    if template(k) != "%" || k == numel (template)
      text(end+1) = template(k);
      k++;
      continue
    end
    k++;
    % A flag of C's that asks for another writing of the same is passed over.
    if any (template(k) == "EO") && k < numel (template), k++; end
    text = [text, part(template(k), tm)];
    k++;
  end
end

function s = part (letter, tm)
  days = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  months = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", ...
            "November", "December"};
  year = tm.year + 1900;
  hour12 = mod (tm.hour + 11, 12) + 1;
  switch letter
    case "%", s = "%";
    case "n", s = "\n";
    case "t", s = "\t";
    case "H", s = sprintf ("%02d", tm.hour);
    case "I", s = sprintf ("%02d", hour12);
    case "k", s = sprintf ("%2d", tm.hour);
    case "l", s = sprintf ("%2d", hour12);
    case "M", s = sprintf ("%02d", tm.min);
    case "S", s = sprintf ("%02d", floor (tm.sec));
    case "p", if tm.hour < 12, s = "AM"; else, s = "PM"; end
    case "s", s = sprintf ("%d", floor (mktime (tm)));
    case {"R", "T", "X", "D", "x", "F", "r", "c"}
      whole = struct ("R", "%H:%M", "T", "%H:%M:%S", "X", "%H:%M:%S", "D", "%m/%d/%y", "x", "%m/%d/%y", ...
                      "F", "%Y-%m-%d", "r", "%I:%M:%S %p", "c", "%a %b %e %H:%M:%S %Y");
      s = strftime (whole.(letter), tm);
    case "Z", s = tm.zone;
    case "z", s = sprintf ("%+05d", 100 * fix (tm.gmtoff / 3600) + rem (tm.gmtoff, 3600) / 60);
    case "a", s = days{tm.wday + 1}(1:3);
    case "A", s = days{tm.wday + 1};
    case {"b", "h"}, s = months{tm.mon + 1}(1:3);
    case "B", s = months{tm.mon + 1};
    case "C", s = sprintf ("%02d", floor (year / 100));
    case "d", s = sprintf ("%02d", tm.mday);
    case "e", s = sprintf ("%2d", tm.mday);
    case "j", s = sprintf ("%03d", tm.yday + 1);
    case "m", s = sprintf ("%02d", tm.mon + 1);
    case "U", s = sprintf ("%02d", floor ((tm.yday + 7 - tm.wday) / 7));
    case "W", s = sprintf ("%02d", floor ((tm.yday + 7 - mod (tm.wday + 6, 7)) / 7));
    case "u", s = sprintf ("%d", mod (tm.wday + 6, 7) + 1);
    case "w", s = sprintf ("%d", tm.wday);
    case "y", s = sprintf ("%02d", mod (year, 100));
    case "Y", s = sprintf ("%d", year);
    otherwise, s = ["%" letter];
  end
end

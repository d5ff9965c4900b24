function varargout = curl (varargin)
  % Of a field in the plane or in space, on a grid of its own or of steps of 1.
  switch nargin
    case {2, 3}, field = varargin;
    case 4, field = varargin(3:4);
    case 6, field = varargin(4:6);
    otherwise, print_usage ();
  end
  is_plane = numel (field) == 2;
  steps = repmat ({1}, 1, numel (field));
  if nargin > 3
    for k = 1:numel (field)
      x = varargin{k};
      at = repmat ({1}, 1, ndims (x));
      if k < 3, at{3-k} = ":"; else, at{k} = ":"; end
      if ! isvector (x), x = x(at{:}); end
      steps{k} = x(:);
    end
  end
  part = @(f, by) slope (field{f}, by, steps);
  cz = part (2, 1) - part (1, 2);
  if is_plane
    velocity = cz / 2;
    if nargout < 2, varargout = {velocity}; else, varargout = {cz, velocity}; end
    return
  end
  cx = part (3, 2) - part (2, 3);
  cy = part (1, 3) - part (3, 1);
  long = sqrt (field{1} .^ 2 + field{2} .^ 2 + field{3} .^ 2);
  velocity = (cx .* field{1} + cy .* field{2} + cz .* field{3}) ./ (2 * long);
  if nargout < 2, varargout = {velocity}; else, varargout = {cx, cy, cz, velocity}; end
end
function g = slope (f, by, steps)
  outputs = cell (1, numel (steps));
  [outputs{:}] = gradient (f, steps{:});
  g = outputs{by};
end

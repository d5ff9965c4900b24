function varargout = ode23 (fcn, tspan, y0, varargin)
  if nargin < 3, print_usage (); end
  % Bogacki and Shampine's pair of orders 3 and 2.
  c = [0, 1/2, 3/4, 1];
  a = [0, 0, 0; 1/2, 0, 0; 0, 3/4, 0; 2/9, 1/3, 4/9];
  b = [2/9, 1/3, 4/9, 0];
  e = b - [7/24, 1/4, 1/3, 1/8];
  if nargout == 1
    varargout{1} = embedded_steps ("ode23", fcn, tspan, y0, c, a, b, e, [], 3, 1, varargin{:});
  else
    [t, y, te, ye, ie] = embedded_steps ("ode23", fcn, tspan, y0, c, a, b, e, [], 3, 1, varargin{:});
    varargout = {t, y, te, ye, ie};
  end
end

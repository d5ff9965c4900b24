function varargout = ode45 (fcn, tspan, y0, varargin)
  if nargin < 3, print_usage (); end
  % Dormand and Prince's pair of orders 5 and 4.
  c = [0, 1/5, 3/10, 4/5, 8/9, 1, 1];
  a = [0, 0, 0, 0, 0, 0; 1/5, 0, 0, 0, 0, 0; 3/40, 9/40, 0, 0, 0, 0; 44/45, -56/15, 32/9, 0, 0, 0; ...
       19372/6561, -25360/2187, 64448/6561, -212/729, 0, 0; 9017/3168, -355/33, 46732/5247, 49/176, -5103/18656, 0; ...
       35/384, 0, 500/1113, 125/192, -2187/6784, 11/84];
  b = [35/384, 0, 500/1113, 125/192, -2187/6784, 11/84, 0];
  e = b - [5179/57600, 0, 7571/16695, 393/640, -92097/339200, 187/2100, 1/40];
  % Their polynomials between steps, of order 4.
  dense = [1, -183/64, 37/12, -145/128; 0, 0, 0, 0; 0, 1500/371, -1000/159, 1000/371; 0, -125/32, 125/12, -375/64; ...
           0, 9477/3392, -729/106, 25515/6784; 0, -11/7, 11/3, -55/28; 0, 3/2, -4, 5/2];
  if nargout == 1
    varargout{1} = embedded_steps ("ode45", fcn, tspan, y0, c, a, b, e, dense, 5, 4, varargin{:});
  else
    [t, y, te, ye, ie] = embedded_steps ("ode45", fcn, tspan, y0, c, a, b, e, dense, 5, 4, varargin{:});
    varargout = {t, y, te, ye, ie};
  end
end

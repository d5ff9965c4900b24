function [v, z] = polyeig (varargin)
  % The eigenvalues of the companion pencil.
  if nargin < 1, print_usage (); end
  n = rows (varargin{1});
  for k = 1:nargin
    if ! (isnumeric (varargin{k}) && isequal (size (varargin{k}), [n, n])), error ("polyeig: coefficients must be square matrices of the same size"); end
  end
  l = nargin - 1;
  d = eye (n * l);
  d(end-n+1:end,end-n+1:end) = varargin{l+1};
  e = zeros (n * l);
  % The last block of rows holds the polynomial, the others say that each part of a vector is z times the one before.
  for k = 1:l, e(end-n+1:end,(k-1)*n+1:k*n) = -varargin{k}; end
  e(1:end-n,n+1:end) = eye (n * (l - 1));
  if nargout < 2
    v = eig (e, d);
  else
    [v, z] = eig (e, d);
    z = diag (z);
    v = v(1:n,:);
    v ./= sqrt (sum (abs (v) .^ 2, 1));
  end
end

function y = times_matrix (a, x)
  % A matrix, or a function that stands for one, times a vector; nothing stands for the identity.
  if isempty (a)
    y = x;
  elseif isnumeric (a)
    y = a * x;
  else
    y = feval (a, x);
  end
end

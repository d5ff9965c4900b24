function limit = area_limit (who, name, limit)
  % The limit of an integral as a function.
  if is_function_handle (limit), return; end
  if ! (isnumeric (limit) && isreal (limit) && isscalar (limit))
    error ("%s: %s must be a real scalar or a function", who, name);
  end
  limit = @(varargin) limit;
end

function varargout = same_size_numbers (who, names, varargin)
  if ! all (cellfun (@isnumeric, varargin)), error ("%s: %s must be numeric arrays or scalars", who, names); end
  [differ, varargout{1:numel (varargin)}] = common_size (varargin{:});
  if differ, error ("%s: %s must be the same size or scalars", who, names); end
end

function a = rectint (p, q)
  if nargin != 2, print_usage (); end
  w = min (p(:,1) + p(:,3), (q(:,1) + q(:,3))') - max (p(:,1), q(:,1)');
  h = min (p(:,2) + p(:,4), (q(:,2) + q(:,4))') - max (p(:,2), q(:,2)');
  a = max (w, 0) .* max (h, 0);
end

% A script goes to other folders, writes and reads there, and finds the functions that lie in them.
start = pwd ();
base = tempname ();
mkdir (base); mkdir (base, 'below');
cd (base);
[~, here] = fileparts (pwd ()); [~, expected] = fileparts (base);
strcmp (here, expected)
f = fopen ('twice.m', 'w'); fputs (f, "function y = twice (x)\n  y = 2 * x;\nend\n"); fclose (f);
f = fopen ('below/twice.m', 'w'); fputs (f, "function y = twice (x)\n  y = [x x];\nend\n"); fclose (f);
cd (base);
twice (4)
before = cd ('below');
strcmp (before, pwd ()), strcmp (fileparts (pwd ()), before)
clear functions
twice (4)
a = 5; save ('v.mat', 'a'); clear a
load v.mat
a
csvwrite ('c.csv', [1 2; 3 4]);
sum (csvread ('c.csv')(:))
isfile ('c.csv'), exist ('c.csv'), numel (dir ('.')) - 2
cd ..
isfile ('c.csv'), isfile ('below/c.csv')
try, cd ('no/such'), catch err, disp (err.message), end
try, cd ('twice.m'), catch err, disp (err.message), end
clear -regexp ^be.*e$
exist ('before'), exist ('base')
cd (start)
strcmp (pwd (), start)
mkdir (base, 'one'); mkdir (base, 'two');
for place = {'one', 'two'}
  f = fopen (fullfile (base, place{1}, 'whence_came.m'), 'w');
  fprintf (f, "function s = whence_came ()\n  s = '%s';\nend\n", place{1});
  fclose (f);
end
addpath (fullfile (base, 'one')); addpath (fullfile (base, 'two'));
whence_came ()
rmpath (fullfile (base, 'two')); clear functions
whence_came ()
rmpath (fullfile (base, 'one'));
for name = {'one/whence_came.m', 'two/whence_came.m', 'below/twice.m', 'below/v.mat', 'below/c.csv', 'twice.m'}, delete (fullfile (base, name{1})); end
rmdir (fullfile (base, 'one')); rmdir (fullfile (base, 'two')); rmdir (fullfile (base, 'below')); rmdir (base); isfolder (base)

% Records what GNU Octave prints for small cases of our own: octave-cli -q crates/tidemill-script/tests/script/record.m
% Each file of octave/ holds cases: a line `>>> code`, then what it printed. A case that fails printed `error: message`.
% tests/script_octave.rs runs the same cases and compares.
1;
function out = run_case(code)
  format
  try
    out = evalc(code);
  catch err
    out = ['error: ' strtrim(err.message)];
  end
end
function write_cases(name, codes)
  fid = fopen(fullfile(fileparts(mfilename('fullpath')), 'octave', [name '.txt']), 'w');
  for i = 1:numel(codes)
    out = run_case(codes{i});
    if ~isempty(out) && out(end) ~= "\n", out(end+1) = "\n"; end
    fprintf(fid, '>>> %s\n%s', codes{i}, out);
  end
  fclose(fid);
  printf('%s: %d cases\n', name, numel(codes));
end
% The lines of a file, without blank ones and comments: a case each.
function codes = lines_of(name)
  codes = {};
  fid = fopen(fullfile(fileparts(mfilename('fullpath')), name));
  while true
    line = fgetl(fid);
    if ~ischar(line), break, end
    if isempty(strtrim(line)) || line(1) == '%', continue, end
    codes{end+1} = line;
  end
  fclose(fid);
end
function codes = combine(template, first, second)
  codes = {};
  for i = 1:numel(first)
    for j = 1:numel(second)
      codes{end+1} = strrep(strrep(template, '$1', first{i}), '$2', second{j});
    end
  end
end
warning('off', 'all');
values = {'0','-0','1','-1','2.5','-2.5','0.5','NaN','Inf','-Inf','[]','zeros(0,3)','zeros(3,0)','ones(1,0)','[1 2 3]','[1;2;3]','[1 2;3 4]','[1 NaN 3]','[NaN NaN]','[3 1 2;9 7 8]','[-1.5 0.5 2.5]','reshape(1:24,[2 3 4])','single(2.5)','single([1.5 2.5;-0.5 NaN])','int8([1 -2 127 -128])','uint8([0 1 255])','int32(7)','int64(9007199254740993)','uint64(18446744073709551615)','true','false','[true false;false true]','''abc''','''''','[''ab'';''cd'']','3+4i','[1+2i 3-4i]','1e10','[1e10 1]','[1e-5 1]','0.1','1/3','pi','[pi;-exp(1);100]','1:5','0:0.25:1','{}','{1,''a''}','struct(''a'',1)'};
numeric = values(1:45);

write_cases('display', [combine('x = $1$2', values, {''}), combine('disp($1)$2', values, {''}), combine('$1$2', values, {''}), combine('format long; x = $1$2', values, {''}), combine('c = {$1}$2', values, {''}), combine('s.f = $1$2', values, {''})]);
elementwise = {'abs','sign','sqrt','exp','expm1','log','log1p','log2','log10','sin','cos','tan','asin','acos','atan','sinh','cosh','tanh','asinh','acosh','atanh','floor','ceil','round','fix','gamma','isnan','isinf','isfinite','not','real','imag','conj','arg','double','single','int8','uint8','int32','logical','-','+','!'};
write_cases('elementwise', combine('x = $1($2); disp(x), disp(class(x)), disp(size(x))', elementwise, numeric));
operators = {'+','-','.*','./','.^','*','==','~=','<','<=','>','>=','&','|'};
operands = {'2','-3','0.5','NaN','[]','[1 2 3]','[1;2;3]','[1 2;3 4]','single(1.5)','single([1 2;3 4])','int8(100)','int8([50 -60 70])','uint8(200)','true','[true false true]','''a''','1+2i','[1i 2]','int32([7;-8])','{}'};
pairs = {};
for o = 1:numel(operators)
  pairs = [pairs, combine(['x = $1 ' operators{o} ' $2; disp(x), disp(class(x)), disp(size(x))'], operands, operands)];
end
write_cases('operators', pairs);
reductions = {'sum','prod','mean','median','std','var','min','max','any','all','cumsum','cumprod','cummax','cummin','sort','numel','ndims','isempty','length','size','columns','rows','nnz','mode','range'};
reduced = {'[]','zeros(0,3)','zeros(3,0)','5','[3 1 2]','[3;1;2]','[4 2;1 3]','[1 NaN 3]','[NaN NaN]','[NaN 1;2 NaN]','reshape(1:12,[2 3 2])','single([1.5 2.5])','int8([100 100 -5])','uint8([1 2;3 250])','[true true false]','[2 2 1 1]','[1+2i 3]','-[1 2 3]'};
write_cases('reductions', [combine('x = $1($2); disp(x), disp(class(x)), disp(size(x))', reductions, reduced), combine('x = $1($2,1); disp(x), disp(size(x))', {'sum','prod','mean','median','any','all','cumsum','cumprod','sort','size'}, reduced), combine('x = $1($2,2); disp(x), disp(size(x))', {'sum','prod','mean','median','any','all','cumsum','cumprod','sort','size'}, reduced), combine('x = $1($2,[],2); disp(x), disp(size(x))', {'min','max','std','var'}, reduced), combine('x = $1($2,3); disp(x), disp(size(x))', {'sum','prod','mean','any','all','cumsum'}, reduced), combine('[m,i] = $1($2); disp(m), disp(i)', {'min','max','sort','mode'}, reduced)]);
arrays = {'1:5','(1:5)''','magic(4)','reshape(1:24,[2 3 4])','''hello''','{1,''two'',[3 4]}','[true false true]','int8([1 2;3 4])','7','single([1.5 2.5])'};
indices = {'1','2','end','[1 2]','[2;1]',':','[]','end:-1:1','[true false true]','0','1.5','-1','100','1,1','1,:',':,1','end,end','[1 1 1]',':,:','1,1,1','end+1'};
write_cases('indexing', [combine('a = $1; x = a($2)', arrays, indices), combine('a = $1; a($2) = 9', arrays(1:4), indices), combine('a = $1; a($2) = []', arrays(1:6), indices), combine('a = $1; a($2) = a(1)', arrays, indices)]);
cats = {'1','[1 2]','[1;2]','[]','zeros(1,0)','''ab''','single(3)','int8(5)','true','{2}','1i','[1 2;3 4]','''''','struct(''a'',1)'};
write_cases('concatenation', [combine('x = [$1, $2]', cats, cats), combine('x = [$1; $2]', cats, cats)]);
formats = {'''%d\n''','''%5.2f|\n''','''%g\n''','''%s\n''','''%e\n''','''%x\n''','''%5s|\n''','''%-8d|\n''','''%+d\n''','''%i %i\n''','''%d, %s\n''','''%c\n''','''%05d\n''','''%.3g\n''','''%%\n''','''a\tb\n''','''%u\n'''};
fargs = {'5','-5','2.5','[1 2 3]','''abc''','NaN','Inf','-Inf','1e10','true','int8(5)','[]','''''','pi','[65 66]','1,2','''a'',2','uint8(200)','1e-5','123456789','single(0.1)','{}','-0'};
write_cases('printf', [combine('fprintf($1, $2)', formats, fargs), combine('x = sprintf($1, $2)', formats, fargs), combine('x = $1($2)', {'num2str','mat2str','int2str','disp'}, [numeric, {'[1.5 2.25;-3 100]','[1e10 1]','pi*1000','123456.789','[0.1 22.22]','-[1 2;3 4]'}])]);
write_cases('extra', lines_of('extra.m'));
write_cases('forms', lines_of('cases/forms.txt'));
write_cases('shown', lines_of('cases/shown.txt'));
write_cases('text', lines_of('cases/text.txt'));
write_cases('drawn', lines_of('cases/drawn.txt'));
write_cases('language', lines_of('cases/language.txt'));
write_cases('calls', lines_of('cases/calls.txt'));
write_cases('bounds', lines_of('cases/bounds.txt'));
write_cases('numerics', lines_of('cases/numerics.txt'));
write_cases('odd', lines_of('cases/odd.txt'));
write_cases('functions', lines_of('cases/functions.txt'));
write_cases('edges', lines_of('cases/edges.txt'));
write_cases('refused', lines_of('cases/refused.txt'));
write_cases('library_forms', lines_of('cases/library_forms.txt'));
write_cases('settled', lines_of('cases/settled.txt'));

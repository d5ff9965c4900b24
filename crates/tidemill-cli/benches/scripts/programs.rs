//! The programs that are measured beside Octave.

/// A program, and the share of Octave's time that it may take.
pub struct Program {
    pub name: &'static str,
    pub goal: f64,
    /// Functions, then statements that leave their result in `check`.
    pub functions: &'static str,
    pub text: &'static str,
}

const fn program(name: &'static str, goal: f64, functions: &'static str, text: &'static str) -> Program {
    Program { name, goal, functions, text }
}

const HALVE: &str = "function y = halve (x)\n  y = x * 0.5 + 1;\nend\n";

/// The scalar loops.
pub const SCALARS: &[Program] = &[
    program("sum of a million numbers", 0.2, "", "s = 0; for k = 1:1000000, s = s + k*2; end, check = s;"),
    program("recurrence", 0.3, "", "x = zeros (1, 1e6); for k = 2:1e6, x(k) = x(k-1)*0.5 + 1; end, check = x(end);"),
    program("recurrence, growing", 0.3, "", "x = 1; for k = 2:1e6, x(k) = x(k-1)*0.5 + 1; end, check = x(end);"),
    program(
        "recurrence, branch and call",
        0.3,
        HALVE,
        "x = zeros (1, 2e5); for k = 2:2e5, if x(k-1) < 1.9, x(k) = halve (x(k-1)); else, x(k) = 0; end, end
         check = sum (x);",
    ),
    program("while", 0.3, "", "k = 0; s = 0; while k < 3e5, k += 1; if k > 9 && s >= 0, s += k; end, end, check = s;"),
    program(
        "int32 recurrence",
        1.0,
        "",
        "x = zeros (1, 1e5, 'int32'); for k = 2:1e5, x(k) = x(k-1) + int32 (3); end, check = double (x(end));",
    ),
];

/// 100,000 statements on small matrices (or as many as Octave finishes in a short time).
pub const SMALL_MATRICES: &[Program] = &[
    program("A * B", 1.0, "", "A = magic (3); B = A'; for k = 1:1e5, C = A*B; end, check = sum (C(:));"),
    program("A + B * 0.5", 1.0, "", "A = magic (3); B = A; for k = 1:1e5, B = A + B*0.5; end, check = sum (B(:));"),
    program("A \\ b", 1.0, "", "A = magic (3); b = [1; 2; 3]; for k = 1:1e5, x = A \\ b; end, check = sum (x);"),
    program("b / A", 1.0, "", "A = magic (3); b = [1 2 3]; for k = 1:1e5, x = b / A; end, check = sum (x);"),
    program("inv and det", 1.0, "", "A = magic (3); for k = 1:5e4, B = inv (A) * det (A); end, check = sum (B(:));"),
    program(
        "slices",
        1.0,
        "",
        "A = magic (3); s = 0; for k = 1:5e4, b = A(2,:); c = A(:,1); s = s + b(2)*c(3); end
         check = s;",
    ),
    program(
        "slice assignment",
        1.0,
        "",
        "A = eye (3); for k = 1:5e4, A(2,:) = [k 1 2]; A(:,1) = k; end
         check = sum (A(:));",
    ),
    program("transpose, minus", 1.0, "", "A = magic (3); for k = 1:1e5, A = -A'; end, check = A(2,1);"),
    program("comparison, any", 1.0, "", "A = magic (3); n = 0; for k = 1:5e4, n = n + any (A(:) > 8); end, check = n;"),
    program("sum, max", 1.0, "", "A = magic (3); for k = 1:5e4, s = sum (A, 2) + max (A, [], 2); end, check = s(3);"),
    program("literals", 1.0, "", "for k = 1:1e5, B = [k 2 3; 4 5 6; 7 8 k]; end, check = sum (B(:));"),
    program("joined rows", 1.0, "", "a = [1 2 3]; for k = 1:1e5, B = [a; a; a]; end, check = sum (B(:));"),
    program("exp, .^", 1.0, "", "A = magic (3) / 9; for k = 1:5e4, B = exp (A) + A.^2; end, check = sum (B(:));"),
    program("mask", 1.0, "", "A = magic (3); for k = 1:1e5, b = A(A > 4); end, check = sum (b);"),
    program(
        "zeros, eye, reshape",
        1.0,
        "",
        "for k = 1:3e4, A = reshape (zeros (3) + eye (3), 1, 9); end, check = sum (A);",
    ),
    program(
        "svd, eig",
        1.0,
        "",
        "A = magic (3); S = A + A'; for k = 1:1e4, s = svd (A) + eig (S); end, check = sum (s);",
    ),
    program("complex", 1.0, "", "A = magic (3) * (1+2i); for k = 1:1e5, B = A*A + A; end, check = abs (sum (B(:)));"),
];

/// Other statements in loops: builtins, texts, containers, calls, growth.
pub const LOOPS: &[Program] = &[
    program(
        "mod, floor, abs, max",
        1.0,
        "",
        "s = 0; for k = 1:3e4, s = max (s, mod (k, 7) + floor (abs (-k) / 3)); end
         check = s;",
    ),
    program(
        "numel, isempty, size",
        1.0,
        "",
        "a = 1:9; s = 0; for k = 1:3e4, s = s + numel (a) + isempty (a) + size (a, 2); end
         check = s;",
    ),
    program(
        "sprintf, num2str",
        1.0,
        "",
        "s = 0; for k = 1:3000, s = s + length ([sprintf('%d,%s', k, 'x') num2str(k)]); end
         check = s;",
    ),
    program("text that grows", 1.0, "", "s = ''; for k = 1:3e4, s = [s 'ab']; end, check = length (s);"),
    program("x(end+1) = k", 1.0, "", "x = []; for k = 1:1e5, x(end+1) = k; end, check = sum (x);"),
    program("x = [x k]", 1.0, "", "x = []; for k = 1:2e4, x = [x k]; end, check = sum (x);"),
    program("c{end+1} = k", 1.0, "", "c = {}; for k = 1:1e5, c{end+1} = k; end, check = numel (c);"),
    program("s.a(k) = k", 1.0, "", "s.a = zeros (1, 1e5); for k = 1:1e5, s.a(k) = k; end, check = sum (s.a);"),
    program("c{1}(k) = k", 1.0, "", "c = {zeros(1, 1e5)}; for k = 1:1e5, c{1}(k) = k; end, check = sum (c{1});"),
    program(
        "A(i,j) = i+j",
        1.0,
        "",
        "A = zeros (300); for i = 1:300, for j = 1:300, A(i,j) = i + j; end, end
         check = sum (A(:));",
    ),
    program("s = s + x(k)", 1.0, "", "x = (1:1e5) * 0.5; s = 0; for k = 1:1e5, s = s + x(k); end, check = s;"),
    program(
        "big argument",
        1.0,
        "function r = at (a, k)\n  r = a(k);\nend\n",
        "a = 1:1e5; s = 0; for k = 1:5e4, s = s + at (a, k); end, check = s;",
    ),
    program(
        "recursion",
        1.0,
        "function r = fib (n)\n  if n < 2, r = n; else, r = fib (n-1) + fib (n-2); end\nend\n",
        "check = fib (18);",
    ),
    program(
        "anonymous function",
        1.0,
        "",
        "a = 3; f = @(x) x*a + 1; s = 0; for k = 1:1e5, s = f (s) * 0.1; end, check = s;",
    ),
    program(
        "cellfun, arrayfun",
        1.0,
        "",
        "c = num2cell (1:5e4);
         check = sum (cellfun (@(x) x*2, c)) + sum (arrayfun (@(x) x+1, 1:5e4));",
    ),
    program(
        "switch on text",
        1.0,
        "",
        "n = 0; w = 'bb';
         for k = 1:1e5, switch w, case 'aa', n = n+1; case {'bb', 'cc'}, n = n+2; end, end, check = n;",
    ),
    program("try", 1.0, "", "n = 0; for k = 1:1e4, try, error ('a:b', 'c'); catch, n = n+1; end, end, check = n;"),
];

/// Loops that change or read parts of arrays that are too large for a script's own memory.
pub const ARRAYS: &[Program] = &[
    program(
        "A(k,:) = r",
        1.0,
        "",
        "A = zeros (1000); r = 1:1000; for k = 1:1000, A(k,:) = r*k; end, check = sum (A(:));",
    ),
    program(
        "A(:,k) from A(:,k-1)",
        1.0,
        "",
        "A = ones (1000); for k = 2:1000, A(:,k) = A(:,k-1)*0.5 + 1; end, check = sum (A(:));",
    ),
    program(
        "A(i,j) from its neighbours",
        1.0,
        "",
        "A = zeros (300); for i = 2:300, for j = 2:300, A(i,j) = A(i-1,j)*0.5 + A(i,j-1)*0.5 + 1; end, end
         check = A(end);",
    ),
    program(
        "A(:,k) = f (A(:,k-1))",
        1.0,
        "",
        "A = ones (500); f = @(x) sin (x)*0.5 + 1; for k = 2:500, A(:,k) = f (A(:,k-1)); end, check = sum (A(:));",
    ),
    program("x = [x(2:end) x(1)]", 1.0, "", "x = 1:10000; for k = 1:200, x = [x(2:end) x(1)]; end, check = x(1);"),
    program(
        "[m, i] = max (x); x(i) = -1",
        1.0,
        "",
        "x = mod ((1:6000)*7919, 6007); s = 0; for k = 1:500, [m, i] = max (x); x(i) = -1; s = s + m; end, check = s;",
    ),
    program(
        "x(x > c) = c",
        1.0,
        "",
        "x = mod ((1:6000)*7919, 6007); s = 0; for k = 1:500, x(x > 6000 - k) = k; s = s + x(7); end, check = s;",
    ),
    program(
        "do until it converges",
        1.0,
        "",
        "x = linspace (1, 2, 5000); n = 0;
         do, y = x; x = 1 + (x - 1)*0.98; n++; until max (abs (x - y)) < 1e-5
         check = n;",
    ),
    program(
        "until it converges",
        1.0,
        "",
        "x = linspace (1, 2, 5000); n = 0; while max (abs (x - 1)) > 1e-3, x = 1 + (x - 1)*0.98; n++; end, check = n;",
    ),
    program(
        "y = y*0.5 + x, 20,000 elements",
        1.0,
        "",
        "x = ones (1, 20000); y = x; for k = 1:500, y = y*0.5 + x; end, check = sum (y);",
    ),
    program("30 x 30 products", 1.0, "", "A = magic (30); B = A'; for k = 1:3000, C = A*B; end, check = sum (C(:));"),
];

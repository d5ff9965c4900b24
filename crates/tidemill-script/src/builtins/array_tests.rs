//! Tests the array families (creation, shapes, reductions, sorting, queries, device) by scripts, with results on the
//! host and on the runtime. Expected values are those of GNU Octave, or of MATLAB where the two differ.

use crate::Script;
use crate::env::Options;
use crate::rig::env_with;
use crate::vm::Interp;

/// Returns a script's output, or the message of its error.
fn printed(code: &str, host_elements_max: usize) -> String {
    let (env, out) = env_with(Options { host_elements_max, ..Options::default() });
    let script = match Script::parse(code) {
        Ok(script) => script,
        Err(error) => return format!("syntax error: {}", error.message),
    };
    let mut interp = Interp::new(env);
    match futures::executor::block_on(script.run_on(&mut interp, false)) {
        Ok(_) => String::from_utf8_lossy(&out.lock().out).into_owned(),
        Err(error) => format!("error: {}", error.message),
    }
}

/// Returns the `mat2str` of an expression's value.
fn value(expression: &str) -> String {
    printed(&format!("disp (mat2str ({expression}))"), 4096).trim_end().to_string()
}

fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(code, expected)| {
            let actual = value(code);
            (actual != *expected).then(|| format!("{code}: {actual}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn filled_arrays_take_sizes_classes_and_prototypes() {
    check(&[
        ("zeros (2, 3)", "[0 0 0;0 0 0]"),
        ("ones ([1 2], 'int8')", "[1 1]"),
        ("size (zeros (-1, 2))", "[0 2]"),
        ("size (ones (2, 3, 0))", "[2 3 0]"),
        ("class (zeros (1, 'like', single (1)))", "'single'"),
        ("iscomplex (zeros (2, 'like', 1i))", "true"),
        ("eye (2, 3)", "[1 0 0;0 1 0]"),
        ("linspace (0, 1, 5)", "[0 0.25 0.5 0.75 1]"),
        ("linspace (1, 2, 1)", "2"),
        ("size (linspace (1, 2, 0))", "[1 0]"),
        ("intmax ('uint64')", "1.84467440737096e+19"),
        ("eps (single (1))", "1.19209289550781e-07"),
        ("magic (4)", "[16 2 3 13;5 11 10 8;9 7 6 12;4 14 15 1]"),
        ("magic (6)(1, :)", "[35 1 6 26 19 24]"),
        ("toeplitz ([1 2 3], [1 5 6])", "[1 5 6;2 1 5;3 2 1]"),
        ("hankel ([1 2 3])", "[1 2 3;2 3 0;3 0 0]"),
        ("diag ([1 2], 1)", "[0 1 0;0 0 2;0 0 0]"),
        ("blkdiag ([1 2], 3)", "[1 2 0;0 0 3]"),
    ]);
}

#[test]
fn shapes_are_asked_for_and_changed() {
    check(&[
        ("size (ones (2, 3, 4), [1 3])", "[2 4]"),
        ("reshape (1:6, [], 2)", "[1 4;2 5;3 6]"),
        ("size (permute (ones (2, 3, 4), [3 1 2]))", "[4 2 3]"),
        ("circshift ([1 2 3; 4 5 6], [1 1])", "[6 4 5;3 1 2]"),
        ("rot90 ([1 2; 3 4])", "[2 4;1 3]"),
        ("repmat ('ab', 1, 2)", "'abab'"),
        ("size (squeeze (ones (1, 1, 3)))", "[3 1]"),
        ("sub2ind ([2 3], [1 2], [1 3])", "[1 6]"),
        ("postpad ([1 2 3], 5)", "[1 2 3 0 0]"),
        ("nthargout (2, @ind2sub, [2 3], 5)", "3"),
    ]);
}

#[test]
fn reductions_take_dimensions_lists_and_flags() {
    check(&[
        ("sum ([1 2; 3 4], 'all')", "10"),
        ("sum (ones (2, 3, 4), [1 3])", "[8 8 8]"),
        ("sum ([])", "0"),
        ("sum (zeros (0, 3))", "[0 0 0]"),
        ("size (sum (zeros (0, 0), 1))", "[1 0]"),
        ("class (sum (int8 ([100 100])))", "'double'"),
        ("sum (int8 ([100 100]), 'native')", "127"),
        ("sum ([1 NaN 2], 'omitnan')", "3"),
        ("prod ([])", "1"),
        ("any ([0 NaN])", "false"),
        ("all (NaN)", "true"),
        ("mean ([])", "NaN"),
        ("mean (ones (2, 2), [1 2])", "1"),
        ("median ([3 1 2 NaN])", "NaN"),
        ("median ([3 1 2 NaN], 'omitnan')", "2"),
        ("median (int8 ([1 2]))", "2"),
        ("mode ([2 2 1 1])", "1"),
        ("var (5)", "0"),
        ("std ([1 2 3 4], 1)", "1.11803398874989"),
        ("max ([NaN; 1; 3])", "3"),
        ("size (max (zeros (0, 3)))", "[0 3]"),
        ("nthargout (2, @max, [NaN NaN])", "1"),
        ("max ([1 5; 7 2], [], 'all')", "7"),
        ("max (int8 (5), 2.7)", "5"),
        ("norm ([3 4])", "5"),
        ("cumsum ([1 2 3], 'reverse')", "[6 5 3]"),
        ("cumsum (int8 ([100 100]))", "[100 127]"),
        ("cumprod ([2 NaN 3], 'omitnan')", "[2 2 6]"),
        ("diff ([1 4 9], 2)", "2"),
        ("std (10000:10009)", "3.02765035409749"),
    ]);
}

#[test]
fn sorting_is_stable_and_knows_where_nan_belongs() {
    check(&[
        ("sort ([NaN 1 NaN 2])", "[1 2 NaN NaN]"),
        ("nthargout (2, @sort, [NaN 1 NaN 2], 'descend')", "[1 3 4 2]"),
        ("sort ([3 1; 2 5], 2, 'descend')", "[3 1;5 2]"),
        ("sortrows ([3 1; 1 2; 1 0], [1 -2])", "[1 2;1 0;3 1]"),
        ("size (find (0))", "[0 0]"),
        ("find ([0 1 1 1], 2, 'last')", "[3 4]"),
        ("unique ([3 1 1 2])", "[1 2 3]"),
        ("unique ([3 1 1 2], 'stable')", "[3 1 2]"),
        ("nthargout (3, @unique, [3 1 1 2])", "[3;1;1;2]"),
        ("numel (unique ([NaN 1 NaN]))", "3"),
        ("unique ([1 2; 1 2; 0 5], 'rows')", "[0 5;1 2]"),
        ("issorted ([1 1 2])", "true"),
    ]);
}

#[test]
fn values_are_equal_by_what_they_hold() {
    check(&[
        ("isequal (struct ('a', 1, 'b', {{2}}), struct ('b', {{2}}, 'a', 1))", "true"),
        ("isequal ('a', 97)", "true"),
        ("isequal (NaN, NaN)", "false"),
        ("isequaln ([1 NaN], [1 NaN])", "true"),
        ("isequal ({1, 'b'}, {1, 'c'})", "false"),
        ("isa (int8 (1), {'numeric', 'float', 'integer'})", "[true false true]"),
    ]);
}

#[test]
fn matrices_of_extreme_numbers_are_decomposed_like_others() {
    check(&[
        ("abs (eig (1e200 * [2 1; 1 2])' / 1e200 - [1 3]) < 1e-14", "[true true]"),
        ("abs (eig (1e-200 * [2 1; 1 2])' / 1e-200 - [1 3]) < 1e-14", "[true true]"),
        ("abs (eig (1e300 * [2 1; 0 3])' / 1e300 - [2 3]) < 1e-14", "[true true]"),
        ("abs (svd (1e200 * [2 1; 1 2])' / 1e200 - [3 1]) < 1e-14", "[true true]"),
        ("abs (svd (1e-306 * [2 1; 1 2])' / 1e-306 - [3 1]) < 1e-14", "[true true]"),
        ("abs (svd (1e308 * [1 .1; .2 1])' / 1e308 - svd ([1 .1; .2 1])') < 1e-14", "[true true]"),
        ("all (isfinite (svd (1e200 * rand (70))))", "true"),
    ]);
}

#[test]
fn scanned_numbers_take_the_size_that_was_asked_for_as_far_as_they_go() {
    check(&[
        ("sscanf ('1', '%d', [3 1])", "1"),
        ("sscanf ('1', '%d', [1e12 1])", "1"),
        ("sscanf ('1', '%d', [3 Inf])", "1"),
        ("sscanf ('1 2 3 4', '%d', [3 2])", "[1 4;2 0;3 0]"),
        ("sscanf ('1 2 3 4', '%d', [3 1])", "[1;2;3]"),
        ("size (sscanf ('1 2', '%d', [0 1]))", "[0 1]"),
        ("size (sscanf ('1 2', '%d', [0 3]))", "[0 3]"),
    ]);
}

#[test]
fn mistakes_are_told_in_octaves_words() {
    for (code, message) in [
        ("sum (1, 0)", "sum: invalid dimension DIM = 0"),
        ("reshape (1:6, 4, 2)", "reshape: can't reshape 1x6 array to 4x2 array"),
        ("reshape (1:6, [], 4)", "reshape: SIZE is not divisible by the product of known dimensions (= 4)"),
        ("zeros (1.5)", "conversion of 1.5 to octave_idx_type value failed"),
        ("zeros (1e6, 1e6)", "out of memory or dimension too large for Octave's index type"),
        ("sum (zeros (0, 1e12))", "out of memory or dimension too large for Octave's index type"),
        ("any (zeros (0, 1e12))", "out of memory or dimension too large for Octave's index type"),
        ("std (zeros (0, 1e7, 1e7))", "out of memory or dimension too large for Octave's index type"),
        ("max ([1 2], [1 2 3])", "max: nonconformant arguments (op1 is 1x2, op2 is 1x3)"),
        ("permute ([1 2], [1 1])", "permute: permutation vector cannot contain identical elements"),
        ("sort (1, 'up')", "sort: MODE must be either \"ascend\" or \"descend\""),
        ("ind2sub ([2 3], 7)", "ind2sub: index out of range"),
        ("randi ([5 1])", "randi: require IMIN <= IMAX"),
        ("sum ({1})", "sum: wrong type argument 'cell'"),
        ("gpuArray ({1})", "gpuArray: arrays of type 'cell' are not supported on the device"),
    ] {
        assert_eq!(printed(code, 4096), format!("error: {message}"), "{code}");
    }
}

#[test]
fn seeds_repeat_numbers_and_states_go_back() {
    let both_equal = |code: &str| assert_eq!(printed(code, 4096), "1\n", "{code}");
    both_equal("rng (5); a = [rand, randn, rand(1, 3)]; rng (5); b = [rand, randn, rand(1, 3)]; disp (isequal (a, b))");
    both_equal("rand; s = rng; a = rand (2, 70); rng (s); disp (isequal (a, rand (2, 70)))");
    both_equal("v = rand ('state'); a = randi (9, 1, 5); rand ('state', v); disp (isequal (a, randi (9, 1, 5)))");
    both_equal("rng (1); a = rand; rng (2); disp (a != rand)");
    both_equal("rng (3); a = randn (100, 100); rng (3); disp (isequal (a, randn (100, 100)))");
    both_equal("x = randi ([-2 2], 1, 500); disp (all (ismember (x, -2:2)) && isequal (unique (x), -2:2))");
    both_equal("p = randperm (50); disp (isequal (sort (p), 1:50) && numel (randperm (9, 4)) == 4)");
    both_equal("x = randperm (5000); disp (isequal (sort (x), 1:5000))");
}

/// Arrays of classes that the runtime has.
const ARRAYS: [&str; 16] = [
    "5",
    "NaN",
    "[3 1 2]",
    "[3;1;2]",
    "[1 NaN 3]",
    "[NaN NaN]",
    "[NaN 1;2 NaN]",
    "reshape (1:12, [2 3 2])",
    "reshape ([3 1 NaN 2 5 4], 1, 1, 6)",
    "single ([0.5 0.25;0.375 1.5])",
    "int32 ([5 -3 8;1 1 2])",
    "uint8 ([9 2 2;1 0 1])",
    "[true false;false false]",
    "[2 2 1 1]",
    "zeros (0, 3)",
    "[1 1 2;3 3 4;1 1 2]",
];

/// Calls, in which `$` stands for the array.
const CALLS: [&str; 64] = [
    "sum ($)",
    "sum ($, 2)",
    "sum ($, 'all')",
    "sum ($, [1 2])",
    "sum ($, 'native')",
    "sum ($, 'omitnan')",
    "prod ($)",
    "prod ($, 3)",
    "sumsq ($)",
    "mean ($)",
    "mean ($, 2)",
    "mean ($, [1 3])",
    "mean ($, 'omitnan')",
    "median ($)",
    "median ($, 'all')",
    "mode ($)",
    "var ($)",
    "std ($, 1, 2)",
    "std ($, 0, 'all')",
    "max ($)",
    "max ($, [], 2)",
    "max ($, [], 'all')",
    "nthargout (2, @max, $)",
    "nthargout (2, @min, $, [], 2)",
    "min ($, 2)",
    "max ($, [], 'includenan')",
    "any ($)",
    "all ($, 2)",
    "nnz ($)",
    "cumsum ($)",
    "cumsum ($, 'reverse')",
    "cumprod ($, 2)",
    "cummax ($)",
    "nthargout (2, @cummin, $)",
    "diff ($)",
    "diff ($, 1, 2)",
    "sort ($)",
    "sort ($, 2, 'descend')",
    "nthargout (2, @sort, $)",
    "find ($)",
    "find ($, 2, 'last')",
    "nthargout (2, @find, $)",
    "nthargout (3, @find, $ (:, :))",
    "nonzeros ($)",
    "unique ($)",
    "reshape ($, [], 1)",
    "permute ($, [3 1 2])",
    "repmat ($, 2, 2)",
    "circshift ($, 1)",
    "circshift ($, -1, 2)",
    "flip ($)",
    "fliplr ($)",
    "rot90 ($ (:, :))",
    "triu ($ (:, :))",
    "tril ($ (:, :), -1)",
    "diag ($ (:, :))",
    "squeeze ($)",
    "size ($)",
    "isequal ($, $)",
    "range ($)",
    "bounds ($)",
    "nthargout (2, @meshgrid, $ (:), 1:2)",
    "linspace ($ (1:min (1, end)), 2, 3)",
    "issorted ($ (:))",
];

#[test]
fn the_runtime_gives_what_the_host_gives() {
    let mut wrong = Vec::new();
    for array in ARRAYS {
        for call in CALLS {
            let show = "disp (class (y)), disp (size (y)), printf ('%.12g ', y)";
            let on_host = printed(&format!("x = {array}; y = {}; {show}", call.replace('$', "x")), 4096);
            let code = format!("x = gpuArray ({array}); y = gather ({}); {show}", call.replace('$', "x"));
            let on_runtime = printed(&code, 0);
            if on_host != on_runtime {
                wrong.push(format!("{code}\nhost:\n{on_host}\nruntime:\n{on_runtime}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
}

#[test]
fn the_device_keeps_what_it_was_given() {
    for (code, expected) in [
        (
            "x = gpuArray (1:3); disp (isgpuarray (x * 2)), disp (class (x)), disp (isgpuarray (gather (x)))",
            "1\ngpuArray\n0\n",
        ),
        ("x = gpuArray.ones (2, 2); disp (sum (x(:)))", "4\n"),
        (
            "x = zeros (2, 'like', gpuArray (single (1))); disp (isgpuarray (x)), disp (underlyingType (x))",
            "1\nsingle\n",
        ),
        ("[a, b] = gather (gpuArray (1), gpuArray (2)); disp (a + b)", "3\n"),
        ("x = rand (100, 100); y = x + 1; wait (gpuDevice); disp (size (y))", "   100   100\n"),
        // Sums of zeros, and signs of -0, are 0 whatever is reduced.
        (
            "x = zeros (100, 100) * -1; disp ([any(1 ./ sum (x, 3)(:) < 0), any(1 ./ mean (x, 3)(:) < 0), any(1 ./ sign (x)(:) < 0)])",
            "  0  0  0\n",
        ),
        ("x = single (ones (100, 100)); x(3) = NaN; disp (norm (x, 1))", "NaN\n"),
        ("x = zeros (100, 100) * -1; disp (max (angle (x)(:)))", "3.1416\n"),
        (
            "x = uint8 (200) * ones (100, 100, 'uint8'); y = sumsq (x, 'native'); disp (class (y)), disp (y(1))",
            "uint8\n255\n",
        ),
        // Arrays in a map or a closure are awaited, too.
        (
            "m = containers.Map (); m('a') = sqrt (rand (100, 100) - 5); try, wait (gpuDevice), catch, disp (1), end",
            "1\n",
        ),
        ("x = sqrt (rand (100, 100) - 5); f = @() x; clear x; try, wait (gpuDevice), catch, disp (2), end, f;", "2\n"),
        ("d = gpuDevice; disp (d.Index), disp (ischar (d.Name))", "1\n1\n"),
        ("x = gpuArray.rand (3, 'single'); disp (isgpuarray (x)), disp (size (x))", "1\n   3   3\n"),
    ] {
        assert_eq!(printed(code, 4096), expected, "{code}");
    }
}

#[test]
fn arrays_of_every_class_can_be_put_on_the_device() {
    let classes = ["double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];
    for class in classes {
        let code = format!(
            "x = {class} ([5 3 4]); g = gpuArray (x);
             disp ({{class(g), underlyingType(g), classUnderlying(g), isa(g, '{class}'), isUnderlyingType(g, '{class}')}})
             disp ([isgpuarray(g), existsOnGPU(g), isa(g, 'gpuArray'), isa(g, 'numeric'), isreal(g), isnumeric(g)])
             y = g + 1; disp ([isgpuarray(y), isequal(gather (y), x + 1), strcmp(class (gather (y)), '{class}')])
             s = [isgpuarray(g(2)), isgpuarray(g(:)), isgpuarray([g g]), isgpuarray(g'), isgpuarray(max (g)), ...
                  isgpuarray(sort (g)), isgpuarray(-g), isgpuarray(g > 3), isgpuarray(repmat (g, 2, 2)), ...
                  isgpuarray(reshape (g, 3, 1)), isgpuarray(zeros (2, 'like', g)), isgpuarray(double (g))]; disp (all (s))
             g(2) = 7; disp ([isgpuarray(g), gather(g(2)), isgpuarray(numel (g)), isgpuarray(size (g)), isgpuarray(x)])"
        );
        let expected = format!(
            "{{\n  [1,1] = gpuArray\n  [1,2] = {class}\n  [1,3] = {class}\n  [1,4] = 0\n  [1,5] = 1\n}}\n  \
             1  1  1  1  1  1\n  1  1  1\n1\n  1  7  0  0  0\n"
        );
        let told = printed(&code, 4096);
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(plain(&told), plain(&expected), "{class}");
    }
    for (code, expected) in [
        (
            "g = gpuArray (1i * [0:3 0 -3:-1]); disp (class (g)), disp (isreal (g)), disp (iscomplex (g))",
            "gpuArray\n0\n1\n",
        ),
        (
            "g = gpuArray ('abc'); disp ({class(g), underlyingType(g)}{2}), disp (gather (g)), disp (isgpuarray (upper (g)))",
            "char\nabc\n0\n",
        ),
        ("g = gpuArray ([true false]); disp (underlyingType (g)), disp (class (!g))", "logical\ngpuArray\n"),
        (
            "x = gpuArray (rand (100)); y = fft (x); disp (class (y)), disp (isreal (y)), z = real (ifft (y)); disp (class (z)), disp (max (abs (z(:) - x(:))) < 1e-12)",
            "gpuArray\n0\ngpuArray\n1\n",
        ),
        (
            "k = gpuArray (1i * [1 2]); u = fft ([1 2]); v = real (ifft (k .* u)); disp (class (v)), disp (class (u))",
            "gpuArray\ndouble\n",
        ),
        (
            "g = gpuArray (complex (1, 2)); disp (class (abs (g))), printf ('%g\\n', gather (abs (g)) ^ 2)",
            "gpuArray\n5\n",
        ),
        (
            "x = int16 ([1 2 3]); x(2) = gpuArray (int16 (9)); disp (class (x)), disp (gather (x))",
            "gpuArray\n  1  9  3\n",
        ),
        (
            "g = gpuArray (int16 (1:3)); c = {g}; disp (class (c{1})), s.a = g; disp (class (s.a)), f = @() g; disp (class (f ()))",
            "gpuArray\ngpuArray\ngpuArray\n",
        ),
        ("g = gpuArray (int16 (1:3)); n = 0; for k = g, n = n + double (k); end, disp (gather (n))", "6\n"),
        (
            "g = gpuArray (int16 (5)); if g > 3, disp ('more'), end, disp (gather (mean (gpuArray (int16 ([1 2])))))",
            "more\n1.5000\n",
        ),
        ("g = gpuArray (uint16 (3))", "g = 3\n"),
        ("g = gpuArray ([1+2i 3])", "g =\n\n   1 + 2i   3 + 0i\n\n"),
        (
            "disp (isa (gpuArray (1), 'double')), disp (isUnderlyingType (gpuArray (1), 'double')), disp (isa (gpuArray (1), 'float'))",
            "0\n1\n1\n",
        ),
        (
            "disp (isa (gpuArray (int8 (1)), 'integer')), disp (isa (gpuArray (int8 (1)), {'int8', 'gpuArray'})), disp (isUnderlyingType (1, 'double'))",
            "1\n  0  1\n1\n",
        ),
        (
            "g = gpuArray (single (3)); disp (isfloat (g)), disp (underlyingType (zeros (2, 2, class (gather (g)))))",
            "1\nsingle\n",
        ),
        ("g = gpuArray (2:5); disp (gather (interp1 (g, g, 2.5))), disp (class (cov (g)))", "2.5000\ngpuArray\n"),
        (
            "try, gpuArray ({1}), catch e, disp (e.message), end",
            "gpuArray: arrays of type 'cell' are not supported on the device\n",
        ),
        ("e = gpuArray ([]); disp (class (e)), disp (size (gpuArray (zeros (0, 3, 'int16'))))", "gpuArray\n   0   3\n"),
        (
            "a = zeros (2, 'int16', 'gpuArray'); b = eye (2, 'like', gpuArray (int8 (1))); c = ones (2, 'like', gpuArray (1i)); disp ({class(a), class(b), class(c)})",
            "{\n  [1,1] = gpuArray\n  [1,2] = gpuArray\n  [1,3] = gpuArray\n}\n",
        ),
    ] {
        assert_eq!(printed(code, 4096), expected, "{code}");
    }
}

#[test]
fn what_is_computed_from_values_of_the_runtime_does_not_wait_for_itself() {
    for (code, expected) in [
        ("s = sum (1:5000) * 0 + 2; switch s, case 1, disp (1), case {3, 2}, disp (2), end", "2\n"),
        ("c = {1:5000, 5000:-1:1}; disp (mat2str (cellfun (@sum, c)))", "[12502500 12502500]\n"),
        ("[m, i] = cellfun (@max, {1:5000, 5000:-1:1}); disp ([m i])", "   5000   5000   5000      1\n"),
        ("x = arrayfun (@(v) single (v), 1:5000); disp (class (x)), disp (sum (x) == 12502500)", "single\n1\n"),
        ("a = eye (80) * 2; b = ones (3, 80); x = b / a; disp (x(3, 80)), disp (size (x))", "0.5000\n    3   80\n"),
    ] {
        assert_eq!(printed(code, 4096), expected, "{code}");
    }
}

#[test]
fn an_error_after_the_last_call_is_not_the_handlers() {
    let code = "x = cellfun (@(v) v, {1, single(2)}, 'ErrorHandler', @(e, v) -1)";
    assert!(printed(code, 4096).starts_with("error: cellfun: return values must be of the same type"));
}

#[test]
fn sets_keep_their_order_and_give_first_places() {
    check(&[
        ("union ([3 1 3], [2 1], 'stable')", "[3 1 2]"),
        ("setxor ([3 1 3], [2 1], 'stable')", "[3 2]"),
        ("setdiff ([3 1 3 2], 1, 'stable')", "[3 2]"),
        ("nthargout (2, @intersect, [5 7 7], [7 9 7])", "2"),
        ("nthargout (2, @union, [5 5], [7 5])", "1"),
        ("nthargout (3, @union, [5 5], [7 5])", "1"),
    ]);
}

#[test]
fn complex_matrices_have_determinants_inverses_ranks_and_products() {
    check(&[
        ("det ([1i 2; 3 4i])", "-10"),
        ("inv ([1i 0; 0 2])", "[0-1i 0+0i;0+0i 0.5+0i]"),
        ("rank ([1i 2i; 1 2])", "1"),
        ("kron ([1 2], 1i)", "[0+1i 0+2i]"),
        ("cross ([1i 0 0], [0 1 0])", "[0+0i 0+0i 0+1i]"),
        ("conv ([1 1i], [1 -1i])", "[1 0 1]"),
    ]);
}

#[test]
fn accumarray_calls_functions_and_interp1_knows_columns_and_cubics() {
    check(&[
        ("accumarray ([1; 2; 1], [5; 6; 9], [], @(v) max (v) - min (v))", "[4;0]"),
        ("accumarray ({[1; 2; 1], [1; 1; 2]}, [1; 2; 3])", "[1 3;2 0]"),
        ("class (accumarray ([1; 2], [5; 6], [], @(v) {v}))", "'cell'"),
        ("nthargout (2, @histc, [0.5 2.5 9], 0:3)", "[1 3 0]"),
        ("interp1 ([1 2 3], [2 6; 8 6; 7 3], [1.5 2.5])", "[5 6;7.5 4.5]"),
        ("interp1 ([1 2 3], [-2 4 1.5], 1.5, 'pchip')", "2.28125"),
        ("interp1 (1:4, [1 8 27 64], 2.5, 'spline')", "15.625"),
        ("round (1000 * polyval (polyfit (1:3, [1 4 9], 2), 5))", "25000"),
    ]);
}

#[test]
fn options_of_sort_max_round_and_cov_are_matlabs() {
    check(&[
        ("sort ([3 NaN 1], 'MissingPlacement', 'first')", "[NaN 1 3]"),
        ("sort ([3 NaN 1], 'descend', 'MissingPlacement', 'last')", "[3 1 NaN]"),
        ("nthargout (2, @sort, [3 NaN 1], 2, 'descend', 'MissingPlacement', 'last')", "[1 3 2]"),
        ("sort ([-3 2 1], 'ComparisonMethod', 'abs')", "[1 2 -3]"),
        ("sort ([2i 1 -3], 'ComparisonMethod', 'real')", "[-3+0i 0+2i 1+0i]"),
        ("sort ([3; -4; 1], 1, 'descend', 'ComparisonMethod', 'abs')", "[-4;3;1]"),
        ("max ([-3 2 1; 0 -5 4], [], 'ComparisonMethod', 'abs')", "[-3 -5 4]"),
        ("max ([-3 2 1; 0 -5 4], [], 2, 'ComparisonMethod', 'abs')", "[-3;-5]"),
        ("nthargout (2, @min, [-3 2 1; 0 -5 4], [], 2, 'ComparisonMethod', 'abs')", "[3;1]"),
        ("nthargout (2, @max, [-3 2 1; 0 -5 4], [], 'ComparisonMethod', 'abs')", "[1 2 2]"),
        ("max ([2i 1], [], 'ComparisonMethod', 'real')", "1"),
        ("round ([1234.5 -0.012345 0], 2, 'significant')", "[1200 -0.012 0]"),
        ("[round(2.346, 2), round(1250, -2)]", "[2.35 1300]"),
        ("round (2.345, 1, 'decimals')", "2.3"),
        (
            "[issorted([1 1 2], 'strictascend'), issorted([1 2], 'strictascend'), issorted([2 1 1], 'monotonic')]",
            "[false true true]",
        ),
        ("[issorted([2 1 1], 'strictmonotonic'), issorted([2 1], 'strictdescend')]", "[false true]"),
        ("cov ([1 2; NaN 4; 3 6; 5 1], 'omitrows')", "[4 -1;-1 7]"),
    ]);
}

#[test]
fn functions_of_the_library_keep_the_class_of_what_is_on_the_device() {
    for (code, expected) in [
        ("disp (gather (bitset (gpuArray (uint8 ([1 2 3])), 1)))", "  1  3  3\n"),
        ("disp (gather (bitget (gpuArray (uint8 ([1 2 3])), 1)))", "  1  0  1\n"),
        ("disp (isequal (gather (swapbytes (gpuArray ([1 2]))), swapbytes ([1 2])))", "1\n"),
        ("x = gpuArray (single ([1 2])); disp (underlyingType (nanmedian (x)))", "single\n"),
        (
            "x = gpuArray (single ([1 2])); disp (underlyingType (cosint (x))), disp (underlyingType (sinint (x)))",
            "single\nsingle\n",
        ),
        ("x = gpuArray (single ([1; 2])); disp (underlyingType (accumdim ([1; 1], x)))", "single\n"),
    ] {
        assert_eq!(printed(code, 4096), expected, "{code}");
    }
}

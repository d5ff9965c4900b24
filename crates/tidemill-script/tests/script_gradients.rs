//! Tests of `dlarray`, `dlfeval`, `dlgradient` and `extractdata`: gradients against finite differences, arrangements of
//! variables, second derivatives, nested calls, errors.

use tidemill::Runtime;
use tidemill_script::{Script, Workspace};

fn run(rt: &Runtime, text: &str) -> Result<Workspace, tidemill_script::error::ScriptError> {
    let script = Script::parse(text)?;
    futures::executor::block_on(script.run(&rt.session("gradients").seed(1).open()))
}

fn host() -> Runtime {
    Runtime::builder().device("host").start_blocking().unwrap()
}

/// What a script prints; an error is a line of its own.
fn printed(rt: &Runtime, text: &str) -> String {
    match run(rt, text) {
        Ok(workspace) => workspace.printed(),
        Err(error) => {
            let out = error.written.as_ref().map(|w| String::from_utf8_lossy(&w.out).into_owned()).unwrap_or_default();
            format!("{out}error: {error}\n")
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let text = include_str!("script/gradients.m");
    let out = printed(&host(), text);
    let names = text.lines().filter_map(|line| line.strip_prefix("check ('")?.split('\'').next());
    let expected: String = names.map(|name| format!("{name} 1 1 1\n")).collect();
    assert_eq!(out, expected);
}

/// Runs the body of a function `f` of `x`, and prints what it returns.
fn in_dlfeval(rt: &Runtime, x: &str, body: &str) -> String {
    let show = "for k = 1:numel (c), v = c{k}; if isdlarray (v), v = extractdata (v); end, disp (v), end";
    let text = format!("function c = f (x)\n{body}\nend\nc = dlfeval (@f, {x});\n{show}");
    printed(rt, &text)
}

#[test]
fn variables_keep_their_arrangement_and_gradients_have_gradients() {
    let rt = host();
    let cases = [
        // Structs and cells of dlarrays.
        (
            "struct ('w', dlarray ([1 2; 3 4]), 'more', {{dlarray(5), dlarray(single (2))}})",
            "y = sum (x.w(:) .^ 2) * x.more{1} + double (x.more{2} ^ 2);
             [a, b] = dlgradient (y, x, x.more);
             c = {a.w, a.more{1}, a.more{2}, class(a.w), underlyingType(b{2}), class(b), size(b)};",
            "   10   20\n   30   40\n30\n4\ndlarray\nsingle\ncell\n   1   2\n",
        ),
        // A second derivative, a third one, and one of a linear function.
        (
            "dlarray (2)",
            "g = dlgradient (x ^ 4, x, 'EnableHigherDerivatives', true, 'RetainData', true);
             h = dlgradient (g, x, 'EnableHigherDerivatives', true); k = dlgradient (h, x);
             l = dlgradient (3 * x, x, 'EnableHigherDerivatives', true); m = dlgradient (l * 2 + g, x);
             c = {g, h, k, l, m};",
            "32\n48\n48\n3\n48\n",
        ),
        // A gradient by what was computed on the way, and by what the value does not depend on.
        (
            "dlarray ([1 2 3])",
            "z = x .^ 2; u = x(1) * 5; y = sum (z .* [1 10 100]); [a, b, d] = dlgradient (y, x, z, u); c = {a, b, d};",
            "     2    40   600\n     1    10   100\n0\n",
        ),
        // The inner call is differentiated by the outer one.
        (
            "dlarray (3)",
            "g = dlfeval (@(u) dlgradient (u ^ 3 * x, u), x); h = dlgradient (g, x); c = {g, h};",
            "81\n81\n",
        ),
        // What a function captured is a constant.
        (
            "dlarray (3)",
            "y = dlarray (3); [a, b] = dlfeval (@(u, v) dlgradient (u * v * y, u, v), y, y); c = {a, b};
             k = extractdata (x); c{3} = dlgradient (x * k, x); c{4} = class (k);",
            "9\n9\n3\ndouble\n",
        ),
        // An error ends the trace of its call, and not that of the call around it.
        (
            "dlarray (3)",
            "try, dlfeval (@(u) error ('no'), x); catch e, c{1} = e.message; end, c{2} = dlgradient (x * x, x);",
            "no\n6\n",
        ),
    ];
    for (x, body, expected) in cases {
        assert_eq!(in_dlfeval(&rt, x, body), expected, "{body}");
    }
}

#[test]
fn what_has_no_derivative_is_an_error_that_names_function_and_line() {
    let rt = host();
    let no_derivative = |name: &str| format!("{name}: has no derivative for a traced dlarray");
    let cases = [
        ("y = sum (eig (x * x')); c = {dlgradient(y, x)};", no_derivative("eig")),
        ("y = x / x(1, :); c = {};", no_derivative("operator /")),
        ("y = sum (besselj (1, x(:))); c = {dlgradient(y, x)};", no_derivative("besselj")),
        ("y = arrayfun (@(v) v ^ 2, x); c = {};", no_derivative("arrayfun")),
        ("y = num2cell (x); c = {};", no_derivative("num2cell")),
        ("y = interp1 (1:3, [1 4 9], x(1)); c = {};", "has no derivative".into()),
        ("y = gamma (x(1)); c = {dlgradient(y, x)};", "gamma: ".into()),
        ("[~, i] = max (x(:)); y = i * 2.5; c = {dlgradient(y, x)};", "the op has no derivative".into()),
        ("c = {dlgradient(x, x)};", "Value to differentiate is non-scalar".into()),
        ("c = {dlgradient(3, x)};", "Value to differentiate is not traced".into()),
        ("c = {dlgradient(dlarray (3), x)};", "Value to differentiate is not traced".into()),
        ("c = {dlgradient(sum (x(:)), 3)};", "dlgradient: variable 1 must be a dlarray, not double".into()),
        ("c = {dlgradient(sum (x(:)), x, dlarray (3))};", "dlgradient: variable 2 is not traced".into()),
        ("c = {dlgradient(sum (x(:)), x, 'Retain', true)};", "there is no option 'Retain'".into()),
        ("g = dlgradient (sum (x(:) .^ 3), x); c = {dlgradient(sum (g(:)), x)};", "is not traced".into()),
    ];
    for (body, message) in cases {
        let out = in_dlfeval(&rt, "dlarray ([1 2; 3 5.5])", body);
        assert!(out.starts_with("error: ") && out.contains(&message), "{body}: {out}");
        assert!(out.contains(":2:"), "the error names the line: {out}");
    }
    for (text, message) in [
        ("x = dlarray (3); dlgradient (x * x, x)", "Value to differentiate is not traced"),
        ("[y, x] = dlfeval (@(x) deal (x * x, x), dlarray (3)); dlgradient (y, x)", "is not traced"),
        ("dlarray (int8 (3))", "dlarray: takes real arrays of class double, single or logical, not int8"),
        ("dlarray (1i)", "dlarray: takes real arrays of class double, single or logical, not complex arrays"),
        ("dlarray (ones (3), 'SB')", "dlarray: formats (labels of dimensions) are not supported"),
        ("dlfeval (3, dlarray (3))", "dlfeval: the first argument must be a function handle"),
    ] {
        let out = printed(&rt, text);
        assert!(out.contains(message), "{text}: {out}");
    }
}

#[test]
fn the_examples_of_the_pages_print_what_they_say() {
    for page in ["matlab.md", "gradients.md"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let page = std::fs::read_to_string(path).unwrap();
        let block = page.split("```matlab\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let said: Vec<&str> = block.lines().filter_map(|line| Some(line.rsplit_once("   % ")?.1)).collect();
        assert_eq!(printed(&host(), block).lines().collect::<Vec<_>>(), said, "{block}");
        assert_eq!(said.len(), 1);
    }
}

#[test]
fn a_dlarray_shows_its_class_and_size() {
    let rt = host();
    let cases = [
        ("x = dlarray ([1 2])", "x =\n\n  1x2 dlarray\n\n   1   2\n\n"),
        ("x = dlarray (1.5)", "x =\n\n  1x1 dlarray\n\n   1.5000\n\n"),
        ("disp (class (dlarray (1) + 1)), disp (underlyingType (dlarray (single (1)) * 2))", "dlarray\nsingle\n"),
        (
            "x = dlarray ([1 2]) > 1; disp (class (x)), disp (underlyingType (x)), if x(2), disp ('yes'), end",
            "dlarray\nlogical\nyes\n",
        ),
        (
            "x = dlarray (ones (2)); y = zeros (2, 3, 'like', x); disp (class (y)), disp (size (y))",
            "dlarray\n   2   3\n",
        ),
        ("x = dlarray ([3 4]); y = extractdata (x) + 1, class (y)", "y =\n\n   4   5\n\nans = double\n"),
        (
            "x = dlarray (gpuArray ([3 4])); disp (class (x)), y = extractdata (x * 2); disp (class (y)), disp (gather (y))",
            "dlarray\ngpuArray\n   6   8\n",
        ),
        (
            "x = dlarray ([3 4]); printf ('%g ', x, sum (x)); y = eig (dlarray ([2 0; 0 3])); disp (class (y))",
            "3 4 7 dlarray\n",
        ),
        ("isa (dlarray (1), 'dlarray'), isa (dlarray (1), 'float'), isdlarray (1)", "ans = 1\nans = 1\nans = 0\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(printed(&rt, text), expected, "{text}");
    }
}

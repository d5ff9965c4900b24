//! Writes `docs/ops.md` from the tables of ops, and fails where the page is out of date (`UPDATE_EXPECT=1` rewrites it).
//!
//! In: the rows of elementwise ops, reductions, scans, distributions, views and library kernels; the measured ulp of
//! `docs/accuracy.md`; and `NAMES`, where MATLAB's and NumPy's names stand. Out: the page. An op without names fails the
//! test.

use super::gradient::GradientRule;
use super::linear::{LinearOp, Triangle};
use super::op::{DimSet, Dist, Fourier, Nan, Op, Parts, RandomKey, ReduceOp, ScanOp, Spectrum, View};
use super::refusals::refusal;
use super::table::{DTypeRule, ElementOp, Gradient};
use crate::dtype::DType;
use std::fmt::Write;

/// A row of the page.
struct Row {
    group: Group,
    name: &'static str,
    dtypes: &'static str,
    runs: String,
    accuracy: String,
    gradient: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Element,
    Reduction,
    Scan,
    Random,
    Layout,
    Library,
}

impl Group {
    const ALL: [(Group, &'static str); 6] = [
        (Group::Element, "Elementwise"),
        (Group::Reduction, "Reductions"),
        (Group::Scan, "Running reductions"),
        (Group::Random, "Random numbers"),
        (Group::Layout, "Layout, indices and assignment"),
        (Group::Library, "Sorts, products, transforms and linear algebra"),
    ];
}

const ANY: &str = "all";
const FLOATS: &str = "f32, f64; others as f64";
const NUMBERS: &str = "numbers; bool as f64";

/// The names of ops in MATLAB and in NumPy, in the order of the page. `-` where there is none.
#[rustfmt::skip]
const NAMES: &[(Group, &str, &str, &str)] = &[
    (Group::Element, "neg", "`-x`", "`-x`"),
    (Group::Element, "abs", "`abs`", "`abs`"),
    (Group::Element, "sign", "`sign`", "`sign`"),
    (Group::Element, "sqrt", "`sqrt`", "`sqrt`"),
    (Group::Element, "square", "`x.^2`", "`square`"),
    (Group::Element, "reciprocal", "`1./x`", "`reciprocal`"),
    (Group::Element, "exp", "`exp`", "`exp`"),
    (Group::Element, "expm1", "`expm1`", "`expm1`"),
    (Group::Element, "exp2", "`2.^x`", "`exp2`"),
    (Group::Element, "log", "`log`", "`log`"),
    (Group::Element, "log1p", "`log1p`", "`log1p`"),
    (Group::Element, "log2", "`log2`", "`log2`"),
    (Group::Element, "log10", "`log10`", "`log10`"),
    (Group::Element, "sin", "`sin`", "`sin`"),
    (Group::Element, "cos", "`cos`", "`cos`"),
    (Group::Element, "cospi", "`cospi`", "-"),
    (Group::Element, "tan", "`tan`", "`tan`"),
    (Group::Element, "asin", "`asin`", "`arcsin`"),
    (Group::Element, "acos", "`acos`", "`arccos`"),
    (Group::Element, "atan", "`atan`", "`arctan`"),
    (Group::Element, "sinh", "`sinh`", "`sinh`"),
    (Group::Element, "cosh", "`cosh`", "`cosh`"),
    (Group::Element, "tanh", "`tanh`", "`tanh`"),
    (Group::Element, "asinh", "`asinh`", "`arcsinh`"),
    (Group::Element, "acosh", "`acosh`", "`arccosh`"),
    (Group::Element, "atanh", "`atanh`", "`arctanh`"),
    (Group::Element, "floor", "`floor`", "`floor`"),
    (Group::Element, "ceil", "`ceil`", "`ceil`"),
    (Group::Element, "round", "`round`", "- (`rint` rounds halves to even)"),
    (Group::Element, "fix", "`fix`", "`trunc`"),
    (Group::Element, "erf", "`erf`", "`scipy.special.erf`"),
    (Group::Element, "gamma", "`gamma`", "`scipy.special.gamma`"),
    (Group::Element, "lgamma", "`gammaln`", "`scipy.special.gammaln`"),
    (Group::Element, "sigmoid", "`sigmoid`", "`scipy.special.expit`"),
    (Group::Element, "isnan", "`isnan`", "`isnan`"),
    (Group::Element, "isinf", "`isinf`", "`isinf`"),
    (Group::Element, "isfinite", "`isfinite`", "`isfinite`"),
    (Group::Element, "not", "`~x`", "`logical_not`"),
    (Group::Element, "add", "`+`", "`+`"),
    (Group::Element, "sub", "`-`", "`-`"),
    (Group::Element, "mul", "`.*`", "`*`"),
    (Group::Element, "div", "`./`", "`/`"),
    (Group::Element, "pow", "`.^`", "`power`"),
    (Group::Element, "mod", "`mod`", "`mod`"),
    (Group::Element, "rem", "`rem`", "`fmod`"),
    (Group::Element, "atan2", "`atan2`", "`arctan2`"),
    (Group::Element, "hypot", "`hypot`", "`hypot`"),
    (Group::Element, "min", "`min (a, b)`", "`fmin`"),
    (Group::Element, "max", "`max (a, b)`", "`fmax`"),
    (Group::Element, "eq", "`==`", "`==`"),
    (Group::Element, "ne", "`~=`", "`!=`"),
    (Group::Element, "lt", "`<`", "`<`"),
    (Group::Element, "le", "`<=`", "`<=`"),
    (Group::Element, "gt", "`>`", "`>`"),
    (Group::Element, "ge", "`>=`", "`>=`"),
    (Group::Element, "and", "`&`", "`logical_and`"),
    (Group::Element, "or", "`\\|`", "`logical_or`"),
    (Group::Element, "xor", "`xor`", "`logical_xor`"),
    (Group::Element, "select", "`merge`", "`where`"),
    (Group::Element, "clamp", "`min (max (x, lo), hi)`", "`clip`"),
    (Group::Element, "cast", "`double`, `single`, `int32` …", "`astype`"),
    (Group::Reduction, "sum", "`sum`", "`sum`"),
    (Group::Reduction, "prod", "`prod`", "`prod`"),
    (Group::Reduction, "mean", "`mean`", "`mean`"),
    (Group::Reduction, "var", "`var`", "`var`"),
    (Group::Reduction, "std", "`std`", "`std`"),
    (Group::Reduction, "min", "`min`", "`min`, `nanmin`"),
    (Group::Reduction, "max", "`max`", "`max`, `nanmax`"),
    (Group::Reduction, "argmin", "`[~, k] = min (x)`", "`argmin`"),
    (Group::Reduction, "argmax", "`[~, k] = max (x)`", "`argmax`"),
    (Group::Reduction, "any", "`any`", "`any`"),
    (Group::Reduction, "all", "`all`", "`all`"),
    (Group::Reduction, "count_nonzero", "`nnz`", "`count_nonzero`"),
    (Group::Reduction, "norm", "`vecnorm`, `norm (x, 'fro')`", "`linalg.norm`"),
    (Group::Reduction, "logsumexp", "`logsumexp`", "`scipy.special.logsumexp`"),
    (Group::Reduction, "dot", "`dot`", "`vecdot`"),
    (Group::Scan, "cumsum", "`cumsum`", "`cumsum`"),
    (Group::Scan, "cumprod", "`cumprod`", "`cumprod`"),
    (Group::Scan, "cummin", "`cummin`", "`minimum.accumulate`"),
    (Group::Scan, "cummax", "`cummax`", "`maximum.accumulate`"),
    (Group::Random, "rand", "`rand`", "`random.random`"),
    (Group::Random, "randn", "`randn`", "`random.standard_normal`"),
    (Group::Random, "randi", "`randi`", "`random.integers`"),
    (Group::Random, "exponential", "`exprnd`", "`random.exponential`"),
    (Group::Random, "bernoulli", "`binornd (1, p)`", "`random.binomial (1, p)`"),
    (Group::Random, "gamma", "`gamrnd`", "`random.gamma`"),
    (Group::Random, "beta", "`betarnd`", "`random.beta`"),
    (Group::Random, "poisson", "`poissrnd`", "`random.poisson`"),
    (Group::Random, "binomial", "`binornd`", "`random.binomial`"),
    (Group::Layout, "full", "`ones`, `zeros`, `repmat (k, …)`", "`full`"),
    (Group::Layout, "arange", "`a:b`", "`arange`"),
    (Group::Layout, "linspace", "`linspace`", "`linspace`"),
    (Group::Layout, "eye", "`eye`", "`eye`"),
    (Group::Layout, "reshape", "`reshape`", "`reshape`"),
    (Group::Layout, "permute", "`permute`, `x.'`, `flip`", "`transpose`"),
    (Group::Layout, "slice", "`x(a:s:b, :)`", "`x[a:b:s]`"),
    (Group::Layout, "broadcast_to", "-", "`broadcast_to`"),
    (Group::Layout, "repmat", "`repmat`", "`tile`"),
    (Group::Layout, "circshift", "`circshift`", "`roll`"),
    (Group::Layout, "diag", "`diag`", "`diag`"),
    (Group::Layout, "cat", "`cat`, `[a, b]`", "`concatenate`"),
    (Group::Layout, "tril", "`tril`", "`tril`"),
    (Group::Layout, "triu", "`triu`", "`triu`"),
    (Group::Layout, "take", "`x(k)`, `x(k, :)`", "`take`"),
    (Group::Layout, "take_along", "-", "`take_along_axis`"),
    (Group::Layout, "assign_slice", "`x(a:b, :) = y`", "`x[a:b] = y`"),
    (Group::Layout, "assign_index", "`x(k) = y`", "`x[k] = y`"),
    (Group::Layout, "nonzero", "`find`, `x(mask)`", "`flatnonzero`"),
    (Group::Layout, "ensure", "`assert`", "-"),
    (Group::Library, "sort", "`sort`", "`sort`, `argsort`"),
    (Group::Library, "matmul", "`*`, `pagemtimes`", "`matmul`"),
    (Group::Library, "fft", "`fft`, `ifft`", "`fft.fft`, `fft.rfft` …"),
    (Group::Library, "cholesky", "`chol`", "`linalg.cholesky`"),
    (Group::Library, "lu", "`lu`", "`scipy.linalg.lu_factor`"),
    (Group::Library, "solve_triangular", "`linsolve`", "`scipy.linalg.solve_triangular`"),
    (Group::Library, "filter", "`filter`", "`scipy.signal.lfilter`"),
    (Group::Library, "qr", "`qr`", "`linalg.qr`"),
    (Group::Library, "qr_pivoted", "`qr` with three results", "`scipy.linalg.qr(pivoting=True)`"),
    (Group::Library, "eigh", "`eig` of a symmetric matrix", "`linalg.eigh`"),
    (Group::Library, "eig", "`eig`", "`linalg.eig`"),
    (Group::Library, "svd", "`svd`", "`linalg.svd`"),
];

/// The greatest error in ulp that `docs/accuracy.md` has for a function, in f32 and f64 over all devices.
fn measured(name: &str) -> Option<String> {
    let row = include_str!("../../docs/accuracy.md").lines().find(|line| line.starts_with(&format!("| {name} |")))?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let greatest = |places: &[usize]| {
        let numbers = places.iter().filter_map(|&place| cells[place].split(' ').next()?.parse::<f64>().ok());
        numbers.fold(0.0, f64::max)
    };
    Some(format!("{:.1} ulp; f64 {:.1} ulp", greatest(&[2, 6, 7]), greatest(&[4, 8])))
}

fn elementwise(op: ElementOp) -> Row {
    let info = op.info();
    let dtypes = match info.rule {
        DTypeRule::Arithmetic => NUMBERS,
        DTypeRule::Real => FLOATS,
        DTypeRule::Test | DTypeRule::Comparison => "all, to bool",
        DTypeRule::Logic => "bool; numbers as bool",
        DTypeRule::Select => "a bool mask, and all",
        DTypeRule::Cast => ANY,
    };
    let refused: Vec<String> =
        DType::ALL.iter().filter(|&&dtype| refusal(op, dtype).is_some()).map(DType::to_string).collect();
    let runs = match refused.is_empty() {
        true => EVERYWHERE.to_string(),
        false => format!("host and GPU; {} on the host", refused.join(", ")),
    };
    let accuracy = measured(info.name).unwrap_or_else(|| match info.rule {
        DTypeRule::Arithmetic | DTypeRule::Real => "rounded once".to_string(),
        DTypeRule::Test | DTypeRule::Logic | DTypeRule::Comparison | DTypeRule::Select => "exact".to_string(),
        DTypeRule::Cast => "rounded once; integers saturate".to_string(),
    });
    let gradient = match info.gradient {
        Gradient::Rule(_) => "yes".to_string(),
        Gradient::None(why) => format!("none: {why}"),
    };
    Row { group: Group::Element, name: info.name, dtypes, runs, accuracy, gradient }
}

const EVERYWHERE: &str = "host and GPU";

fn other(group: Group, op: &Op, dtypes: &'static str, accuracy: &str) -> Row {
    let facts = op.facts();
    let runs = op.host_only_reason().map_or(EVERYWHERE.to_string(), |why| format!("host: {why}"));
    let gradient = match facts.gradient {
        GradientRule::None { why } => format!("none: {why}"),
        _ => "yes".to_string(),
    };
    // The check's name is the program's.
    let name = if matches!(op, Op::Ensure { .. }) { "ensure" } else { facts.name };
    Row { group, name, dtypes, runs, accuracy: accuracy.to_string(), gradient }
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = ElementOp::ALL.iter().map(|&op| elementwise(op)).collect();
    reductions(&mut rows);
    random(&mut rows);
    layout(&mut rows);
    library(&mut rows);
    rows
}

fn reductions(rows: &mut Vec<Row>) {
    use super::facts::Yields;
    use ReduceOp as R;
    let all = [R::Sum, R::Prod, R::Mean, R::Var { ddof: 1 }, R::Std { ddof: 1 }, R::Min, R::Max, R::ArgMin, R::ArgMax];
    let all = all.into_iter().chain([R::Any, R::All, R::CountNonzero, R::Norm, R::LogSumExp, R::Dot]);
    for op in all {
        let (dtypes, accuracy) = match op.facts().yields {
            Yields::Float => (FLOATS, "[a bound](accuracy.md#sums-scans-and-moments)"),
            Yields::Same => (ANY, "exact"),
            Yields::Count => ("all, to u32", "exact"),
            Yields::Truth => ("all, to bool", "exact"),
        };
        let op = Op::Reduce { op, dims: DimSet::default(), nan: Nan::Include };
        rows.push(other(Group::Reduction, &op, dtypes, accuracy));
    }
    for op in [ScanOp::Sum, ScanOp::Prod, ScanOp::Min, ScanOp::Max] {
        let is_exact = matches!(op, ScanOp::Min | ScanOp::Max);
        let accuracy = if is_exact { "exact" } else { "[a bound](accuracy.md#sums-scans-and-moments)" };
        let op = Op::Scan { op, dim: 0, nan: Nan::Include, reverse: false };
        rows.push(other(Group::Scan, &op, if is_exact { ANY } else { NUMBERS }, accuracy));
    }
}

fn random(rows: &mut Vec<Row>) {
    use Dist as D;
    let all = [D::Uniform, D::Normal, D::Integer, D::Exponential, D::Bernoulli, D::Gamma, D::LogGamma, D::Poisson];
    for dist in all.into_iter().chain([D::Binomial]) {
        let dtypes = match dist {
            D::Uniform | D::Normal | D::Exponential | D::Gamma | D::LogGamma | D::Poisson | D::Binomial => "f32, f64",
            D::Integer | D::Wide => "i32, u32, u8, i64",
            D::Bernoulli => "bool",
        };
        let op = Op::Random { dist, key: RandomKey { seed: 0, stream: 0, op: 0 } };
        rows.push(other(Group::Random, &op, dtypes, "[the same on every device, or close](random.md)"));
    }
}

fn layout(rows: &mut Vec<Row>) {
    let all = [
        Op::Fill,
        Op::Iota,
        Op::Linspace,
        Op::Eye,
        Op::View(View::Reshape),
        Op::View(View::Permute([].into())),
        Op::View(View::Slice([].into())),
        Op::View(View::Broadcast),
        Op::View(View::Repmat),
        Op::View(View::CircShift([].into())),
        Op::View(View::Diagonal(0)),
        Op::Cat { dim: 0 },
        Op::Triangle { upper: false, diagonal: 0 },
        Op::Triangle { upper: true, diagonal: 0 },
        Op::Take { dim: None },
        Op::TakeAlong { dim: 0 },
        Op::AssignSlice([].into()),
        Op::AssignIndex { dim: None },
        Op::Compact,
        Op::Ensure { op: "ensure", message: "".into() },
    ];
    let accuracy = |op: &Op| if matches!(op, Op::Linspace) { "rounded once" } else { "exact" };
    rows.extend(all.iter().map(|op| other(Group::Layout, op, ANY, accuracy(op))));
}

fn library(rows: &mut Vec<Row>) {
    let sort = Op::ArgSort { dim: 0, descending: false };
    let gradient = "of the sorted values; none of the positions".to_string();
    rows.push(Row { gradient, ..other(Group::Library, &sort, ANY, "exact, stable") });
    rows.push(other(Group::Library, &Op::MatMul, FLOATS, "[a bound](accuracy.md#sums-scans-and-moments)"));
    let (parts, spectrum) = (Parts::Together, Spectrum::Full);
    let transform = Fourier { dim: 0, len: 1, inverse: false, parts, spectrum };
    rows.push(other(Group::Library, &Op::Fourier(transform), "f32, f64, c64, c128", "[a bound](accuracy.md)"));
    let all = [
        LinearOp::Cholesky,
        LinearOp::Lu,
        LinearOp::SolveTriangular(Triangle::LOWER),
        LinearOp::Recurrence { order: 1 },
        LinearOp::Qr { full: false },
        LinearOp::QrPivoted,
        LinearOp::Eigh { vectors: true },
        LinearOp::Eig,
        LinearOp::Svd { vectors: true },
    ];
    let bound = "[a bound](accuracy.md#linear-algebra)";
    rows.extend(all.map(|op| other(Group::Library, &Op::Linear(op), FLOATS, bound)));
}

fn page() -> String {
    let mut text = String::from(HEAD);
    let (rows, mut named) = (rows(), 0);
    for (group, title) in Group::ALL {
        text += &format!("\n## {title}\n\n| op | dtypes | runs on | accuracy | gradient | MATLAB | NumPy |\n");
        text += "|---|---|---|---|---|---|---|\n";
        for row in rows.iter().filter(|row| row.group == group) {
            let names = NAMES.iter().find(|(of, name, ..)| (*of, *name) == (group, row.name));
            let (.., matlab, numpy) = names.unwrap_or_else(|| panic!("{} needs a row of NAMES", row.name));
            named += 1;
            let Row { name, dtypes, runs, accuracy, gradient, .. } = row;
            writeln!(text, "| `{name}` | {dtypes} | {runs} | {accuracy} | {gradient} | {matlab} | {numpy} |").unwrap();
        }
    }
    assert_eq!(named, NAMES.len(), "a name belongs to no op");
    text
}

const HEAD: &str = "# Ops

The ops of the runtime's graph: what they compute in, where they run, how exact they are, whether they have gradients,
and their names elsewhere. `cargo test --lib ops_page` writes this page from the tables of ops (`UPDATE_EXPECT=1`).

All other methods of `Array` are made of these and have their properties: complex numbers, convolutions, interpolation,
statistics, sets, polynomials, solvers and the like ([the documentation of `Array`](https://docs.rs/tidemill)). An accuracy in ulp is the
greatest error that [accuracy.md](accuracy.md) has for f32 over all devices, then for f64. How derivatives pass at kinks
and ties is in [gradients.md](gradients.md).
";

#[test]
fn the_page_of_ops_is_that_of_the_tables() {
    expect_test::expect_file!["../../docs/ops.md"].assert_eq(&page());
}

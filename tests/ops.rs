//! Cases of ops with expected values written out, on every device, folded when recorded and not.

mod common;
use common::{assert_array, runtimes, session, stand_in, values, wait};
use tidemill::{Array, DType, Element, ErrorKind, Session, select, step};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// A case: its name, its program, and the expected dtype, shape and elements.
type Case = (&'static str, fn(&Session) -> Array, DType, &'static [usize], Vec<f64>);

fn row<T: Element>(s: &Session, data: &[T]) -> Array {
    s.from_slice(data, [1, data.len()]).unwrap()
}

fn column<T: Element>(s: &Session, data: &[T]) -> Array {
    s.from_slice(data, [data.len(), 1]).unwrap()
}

fn matrix(s: &Session) -> Array {
    s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap()
}

fn run(cases: Vec<Case>) {
    for (device, runtime) in runtimes().into_iter().chain([("stand-in".to_owned(), stand_in())]) {
        let s = session(&runtime);
        for (name, case, dtype, shape, expected) in &cases {
            let what = format!("{name} on {device}");
            let array = case(&s);
            assert_eq!(array.dtype().unwrap_or_else(|e| panic!("{what}: {e}")), *dtype, "{what}: dtype");
            let tolerance = if *dtype == DType::F64 { 1e-15 } else { 5e-7 };
            assert_array(&what, &array, shape, expected, tolerance);
        }
    }
}

#[test]
fn elementwise_functions_have_matlabs_values() {
    use DType::*;
    run(vec![
        ("neg saturates", |s| -row(s, &[i32::MIN, 5]), I32, &[1, 2], vec![i32::MAX as f64, -5.0]),
        ("abs saturates", |s| row(s, &[i32::MIN, -5]).abs(), I32, &[1, 2], vec![i32::MAX as f64, 5.0]),
        ("sign", |s| row(s, &[-2.0f32, 0.0, 9.0]).sign(), F32, &[1, 3], vec![-1.0, 0.0, 1.0]),
        (
            "round is half away from zero",
            |s| row(s, &[-2.5f32, -0.4, 0.5, 1.5, 2.5]).round(),
            F32,
            &[1, 5],
            vec![-3.0, 0.0, 1.0, 2.0, 3.0],
        ),
        ("fix", |s| row(s, &[-2.7f32, 2.7]).fix(), F32, &[1, 2], vec![-2.0, 2.0]),
        (
            "cospi is exact at halves",
            |s| row(s, &[0.0f32, 0.25, 0.5, -1.0, 1.5, 16_777_215.0]).cospi(),
            F32,
            &[1, 6],
            vec![1.0, std::f64::consts::FRAC_1_SQRT_2, 0.0, -1.0, 0.0, -1.0],
        ),
        (
            "isnan of a fused chain",
            |s| (row(s, &[0.0f32, 1.0, -1.0]).log() * 2.0).isnan(),
            Bool,
            &[1, 3],
            vec![0.0, 0.0, 1.0],
        ),
        ("isinf", |s| row(s, &[0.0f32, 1.0]).log().isinf(), Bool, &[1, 2], vec![1.0, 0.0]),
        ("isfinite", |s| (1.0 / row(s, &[0.0f32, 4.0])).isfinite(), Bool, &[1, 2], vec![0.0, 1.0]),
        ("not", |s| !row(s, &[0.0f32, 3.0]), Bool, &[1, 2], vec![1.0, 0.0]),
        (
            "exp",
            |s| row(s, &[0.0f32, 1.0, -100.0, 100.0]).exp(),
            F32,
            &[1, 4],
            vec![1.0, std::f64::consts::E, 3.783506e-44, INF],
        ),
        (
            "sin of large arguments",
            |s| row(s, &[1.0e6f32, 1.0e10]).sin(),
            F32,
            &[1, 2],
            vec![-0.34999350217, -0.48750602],
        ),
        ("negative powers of negatives", |s| row(s, &[-2.0f32, 3.0]).pow(3.0), F32, &[1, 2], vec![-8.0, 27.0]),
        (
            "powers at the edges",
            |s| row(s, &[0.0f32, 0.0, 2.0, 4.0]).pow(row(s, &[0.0f32, -1.0, -1.0, 0.5])),
            F32,
            &[1, 4],
            vec![1.0, INF, 0.5, 2.0],
        ),
        (
            "mod takes the divisor's sign",
            |s| row(s, &[5.0f32, -5.0, 5.0, 5.0]).modulo(row(s, &[3.0f32, 3.0, -3.0, 0.0])),
            F32,
            &[1, 4],
            vec![2.0, 1.0, -1.0, 5.0],
        ),
        (
            "an infinite divisor leaves what is there",
            |s| row(s, &[0.0f32, 0.0, 5.0, -5.0]).modulo(row(s, &[-INF as f32, INF as f32, INF as f32, -INF as f32])),
            F32,
            &[1, 4],
            vec![0.0, 0.0, 5.0, -5.0],
        ),
        (
            "a zero among finite numbers makes their product zero, wherever it stands",
            |s| {
                tidemill::cat(0, &[&s.arange(0.0f32, 2000.0, 1.0).prod(..), &s.arange(-1500.0f32, 500.0, 1.0).prod(..)])
                    .unwrap()
            },
            F32,
            &[2, 1],
            vec![0.0, 0.0],
        ),
        ("infinity times zero is no number", |s| row(s, &[INF as f32, 2.0, 0.0]).prod(..), F32, &[1, 1], vec![NAN]),
        (
            "rem takes the dividend's sign",
            |s| &row(s, &[5.0f32, -5.0, 5.0]) % &row(s, &[3.0f32, 3.0, 0.0]),
            F32,
            &[1, 3],
            vec![2.0, -2.0, NAN],
        ),
        (
            "atan2",
            |s| row(s, &[1.0f32, -1.0]).atan2(row(s, &[-1.0f32, 0.0])),
            F32,
            &[1, 2],
            vec![2.356194490192345, -std::f64::consts::FRAC_PI_2],
        ),
        ("hypot does not overflow", |s| row(s, &[3.0e30f32]).hypot(row(s, &[4.0e30f32])), F32, &[1, 1], vec![5.0e30]),
        (
            "min and max of pairs omit NaN",
            |s| row(s, &[f32::NAN, 2.0]).max(row(s, &[1.0f32, f32::NAN])),
            F32,
            &[1, 2],
            vec![1.0, 2.0],
        ),
        ("erf", |s| row(s, &[0.5f32, -3.0]).erf(), F32, &[1, 2], vec![0.5204998778130465, -0.9999779095030014]),
        ("gamma", |s| row(s, &[5.0f32, 0.5]).gamma(), F32, &[1, 2], vec![24.0, 1.772453850905516]),
        ("lgamma", |s| row(s, &[10.0f32]).lgamma(), F32, &[1, 1], vec![12.801827480081469]),
        ("sigmoid", |s| row(s, &[0.0f32, -200.0, 200.0]).sigmoid(), F32, &[1, 3], vec![0.5, 0.0, 1.0]),
        ("f64 stays f64", |s| row(s, &[1.0f64, 2.0]).exp(), F64, &[1, 2], vec![std::f64::consts::E, 7.38905609893065]),
        ("f32 with f64 is f32", |s| row(s, &[1.0f32]) + row(s, &[2.0f64]), F32, &[1, 1], vec![3.0]),
        ("numbers are weak", |s| row(s, &[1.0f32]) * 0.5, F32, &[1, 1], vec![0.5]),
        ("an integer times a fraction rounds", |s| row(s, &[3i32, 5, -5]) * 0.5, I32, &[1, 3], vec![2.0, 3.0, -3.0]),
        (
            "integer division rounds half away",
            |s| row(s, &[7i32, -7, 1, 0]) / row(s, &[2i32, 2, 0, 0]),
            I32,
            &[1, 4],
            vec![4.0, -4.0, i32::MAX as f64, 0.0],
        ),
        (
            "integers saturate",
            |s| row(s, &[i32::MAX, i32::MIN]) + row(s, &[1i32, -1]),
            I32,
            &[1, 2],
            vec![i32::MAX as f64, i32::MIN as f64],
        ),
        (
            "integer products saturate",
            |s| row(s, &[70_000i32, -70_000]) * row(s, &[70_000i32, 70_000]),
            I32,
            &[1, 2],
            vec![i32::MAX as f64, i32::MIN as f64],
        ),
        ("u8 saturates", |s| row(s, &[250u8, 3]) + row(s, &[10u8, 4]), U8, &[1, 2], vec![255.0, 7.0]),
        ("u32 stays at zero", |s| row(s, &[3u32]) - row(s, &[5u32]), U32, &[1, 1], vec![0.0]),
        (
            "casts round and saturate",
            |s| row(s, &[2.5f32, -1.0, 300.0, f32::NAN]).cast::<u8>(),
            U8,
            &[1, 4],
            vec![3.0, 0.0, 255.0, 0.0],
        ),
        ("bools add as doubles", |s| row(s, &[true, true]) + row(s, &[true, false]), F64, &[1, 2], vec![2.0, 1.0]),
        ("comparisons", |s| row(s, &[1.0f32, f32::NAN, 3.0]).lt(2.0), Bool, &[1, 3], vec![1.0, 0.0, 0.0]),
        (
            "NaN is unequal to itself",
            |s| {
                let x = row(s, &[f32::NAN, 1.0]);
                x.ne_to(&x)
            },
            Bool,
            &[1, 2],
            vec![1.0, 0.0],
        ),
        ("select", |s| select(&row(s, &[true, false]), row(s, &[1.0f32, 2.0]), -1.0), F32, &[1, 2], vec![1.0, -1.0]),
        ("clamp", |s| row(s, &[-3.0f32, 0.5, 9.0]).clamp(0.0, 1.0), F32, &[1, 3], vec![0.0, 0.5, 1.0]),
        ("xor", |s| row(s, &[true, true]) ^ row(s, &[true, false]), Bool, &[1, 2], vec![0.0, 1.0]),
        (
            "expansion aligns leading dimensions",
            |s| column(s, &[1.0f32, 2.0]) + row(s, &[10.0f32, 20.0]),
            F32,
            &[2, 2],
            vec![11.0, 12.0, 21.0, 22.0],
        ),
    ]);
}

#[test]
fn a_check_that_holds_passes_values_of_every_kind_on() {
    use DType::*;
    run(vec![
        (
            "of roots",
            |s| {
                let x = row(s, &[4.0f32, 9.0]);
                x.sqrt().ensure(&x.ge(0.0), "no")
            },
            F32,
            &[1, 2],
            vec![2.0, 3.0],
        ),
        (
            "of f64",
            |s| {
                let x = row(s, &[4.0f64, -9.0]);
                x.ensure(&x.isnan().any(..).eq_to(0.0), "no") * 2.0
            },
            F64,
            &[1, 2],
            vec![8.0, -18.0],
        ),
        (
            "of bools",
            |s| {
                let x = row(s, &[true, false]);
                !x.ensure(&x.any(..), "no")
            },
            Bool,
            &[1, 2],
            vec![0.0, 1.0],
        ),
        (
            "of i64",
            |s| {
                let x = row(s, &[1i64 << 53, 7]);
                x.ensure(&x.gt(0i64), "no") + 1i64
            },
            I64,
            &[1, 2],
            vec![9007199254740992.0, 8.0],
        ),
        (
            "of a row, of each column",
            |s| {
                let x = matrix(s);
                x.ensure(&x.min_over(0).gt(0.0), "no").sum(1)
            },
            F32,
            &[2, 1],
            vec![6.0, 15.0],
        ),
        (
            "of a number",
            |s| {
                let x = matrix(s).sum(..);
                x.ensure(&x.eq_to(21.0), "no")
            },
            F32,
            &[1, 1],
            vec![21.0],
        ),
        (
            "of nothing",
            |s| {
                let x = s.zeros::<f32>([0, 2]);
                x.ensure(&x.gt(0.0), "no")
            },
            F32,
            &[0, 2],
            vec![],
        ),
    ]);
}

#[test]
fn reductions_keep_their_axes_and_their_classes() {
    use DType::*;
    run(vec![
        ("sum over rows", |s| matrix(s).sum(0), F32, &[1, 3], vec![5.0, 7.0, 9.0]),
        ("sum over columns", |s| matrix(s).sum(1), F32, &[2, 1], vec![6.0, 15.0]),
        ("sum of all", |s| matrix(s).sum(..), F32, &[1, 1], vec![21.0]),
        (
            "a sum over a dimension of one element is the identity",
            |s| matrix(s).reshape([2, 3, 1, 1]).sum(3),
            F32,
            &[2, 3],
            vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
        ),
        ("sum of integers is f64", |s| row(s, &[i32::MAX, i32::MAX]).sum(1), F64, &[1, 1], vec![4294967294.0]),
        (
            "sum of a product matrix",
            |s| matrix(s).matmul(&matrix(s).t()).sum(..),
            F32,
            &[1, 1],
            vec![14.0 + 32.0 + 32.0 + 77.0],
        ),
        ("max of a chain", |s| (matrix(s) + 1.0).max_over(..), F32, &[1, 1], vec![7.0]),
        ("max omits NaN", |s| column(s, &[f32::NAN, 1.0, 3.0]).max_over(0), F32, &[1, 1], vec![3.0]),
        ("max of only NaN", |s| column(s, &[f32::NAN, f32::NAN]).max_over(0), F32, &[1, 1], vec![NAN]),
        ("prod", |s| matrix(s).prod(1), F32, &[2, 1], vec![6.0, 120.0]),
        ("mean", |s| matrix(s).mean(1), F32, &[2, 1], vec![2.0, 5.0]),
        ("mean omitting NaN", |s| row(s, &[1.0f32, f32::NAN, 3.0]).nan_mean(1), F32, &[1, 1], vec![2.0]),
        ("sum with NaN", |s| row(s, &[1.0f32, f32::NAN]).sum(1), F32, &[1, 1], vec![NAN]),
        ("sum omitting NaN", |s| row(s, &[1.0f32, f32::NAN]).nan_sum(1), F32, &[1, 1], vec![1.0]),
        (
            "std about the mean",
            |s| s.arange(10_000.0f32, 10_010.0, 1.0).std(..),
            F32,
            &[1, 1],
            vec![3.0276503540974917],
        ),
        ("var of one", |s| column(s, &[5.0f32]).var(0), F32, &[1, 1], vec![0.0]),
        ("argmax takes the first of ties", |s| row(s, &[1.0f32, 5.0, 5.0]).argmax(1), U32, &[1, 1], vec![1.0]),
        ("argmin omits NaN", |s| row(s, &[f32::NAN, 2.0, 1.0]).argmin(1), U32, &[1, 1], vec![2.0]),
        ("any", |s| row(s, &[0.0f32, 2.0]).any(1), Bool, &[1, 1], vec![1.0]),
        ("all", |s| row(s, &[0.0f32, 2.0]).all(1), Bool, &[1, 1], vec![0.0]),
        ("count_nonzero", |s| row(s, &[0.0f32, 2.0, f32::NAN]).count_nonzero(1), U32, &[1, 1], vec![2.0]),
        ("norm does not overflow", |s| row(s, &[3.0e30f32, 4.0e30]).norm(1), F32, &[1, 1], vec![5.0e30]),
        (
            "logsumexp does not overflow",
            |s| row(s, &[1000.0f64, 1000.0]).logsumexp(1),
            F64,
            &[1, 1],
            vec![1000.6931471805599],
        ),
        ("logsumexp over two dimensions", |s| matrix(s).logsumexp(..), F32, &[1, 1], vec![6.456193316018123]),
        (
            "logsumexp over rows",
            |s| matrix(s).logsumexp(0),
            F32,
            &[1, 3],
            vec![4.048587351573742, 5.048587351573742, 6.048587351573742],
        ),
        ("logsumexp of many", |s| s.full(3.0f64, [70_000, 2]).logsumexp(0), F64, &[1, 2], vec![14.156250521031495; 2]),
        ("logsumexp of one", |s| column(s, &[-7.5f32]).logsumexp(0), F32, &[1, 1], vec![-7.5]),
        ("logsumexp of integers", |s| row(s, &[0i32, 0]).logsumexp(1), F64, &[1, 1], vec![std::f64::consts::LN_2]),
        ("logsumexp of nothing", |s| s.zeros::<f32>([0, 2]).logsumexp(0), F32, &[1, 2], vec![-INF, -INF]),
        ("logsumexp of infinity", |s| row(s, &[f32::INFINITY, 1.0]).logsumexp(1), F32, &[1, 1], vec![INF]),
        ("logsumexp with NaN", |s| row(s, &[f32::NAN, 1.0]).logsumexp(1), F32, &[1, 1], vec![NAN]),
        ("logsumexp omitting NaN", |s| row(s, &[f32::NAN, 1.0]).nan_logsumexp(1), F32, &[1, 1], vec![1.0]),
        ("logsumexp of only NaN, omitted", |s| row(s, &[f32::NAN; 3]).nan_logsumexp(1), F32, &[1, 1], vec![-INF]),
        ("dot", |s| row(s, &[1.0f32, 2.0]).dot(&row(s, &[3.0f32, 4.0]), 1), F32, &[1, 1], vec![11.0]),
        (
            "dot omitting pairs with NaN",
            |s| row(s, &[1.0f32, 2.0, f32::NAN, 4.0]).nan_dot(&row(s, &[f32::NAN, 3.0, f32::NAN, 5.0]), 1),
            F32,
            &[1, 1],
            vec![26.0],
        ),
        (
            "dot omitting pairs keeps infinity times zero",
            |s| row(s, &[1.0f64, f64::INFINITY]).nan_dot(&row(s, &[f64::NAN, 0.0]), ..),
            F64,
            &[1, 1],
            vec![NAN],
        ),
        (
            "dot omitting pairs along nothing",
            |s| row(s, &[2.0f32, f32::NAN, 3.0]).nan_dot(&row(s, &[f32::INFINITY, 1.0, 4.0]), 0),
            F32,
            &[1, 3],
            vec![INF, 0.0, 12.0],
        ),
        (
            "dot omitting pairs beside bools",
            |s| row(s, &[true, true, false]).nan_dot(&row(s, &[f64::NAN, 0.5, 2.0]), 1),
            F64,
            &[1, 1],
            vec![0.5],
        ),
        (
            "gamma of integers",
            |s| row(s, &[-1i32, 0, 1, 5, 171, 172, i32::MIN, i32::MAX]).gamma(),
            F64,
            &[1, 8],
            vec![NAN, INF, 1.0, 24.0, 7.257415615307999e306, INF, NAN, INF],
        ),
        ("gamma of u32", |s| row(s, &[0u32, 6, u32::MAX]).gamma(), F64, &[1, 3], vec![INF, 120.0, INF]),
        ("gamma of i64", |s| row(s, &[i64::MIN, 4, i64::MAX]).gamma(), F64, &[1, 3], vec![NAN, 6.0, INF]),
        ("gamma of u8", |s| row(s, &[3u8, 255]).gamma(), F64, &[1, 2], vec![2.0, INF]),
        ("gamma of bool", |s| row(s, &[true, false]).gamma(), F64, &[1, 2], vec![1.0, INF]),
        (
            "min of i64 above 2^53",
            |s| row(s, &[9007199254740993i64, 9007199254740995]).max_over(1) - 9007199254740000i64,
            I64,
            &[1, 1],
            vec![995.0],
        ),
        (
            "normalising over two dimensions",
            |s| {
                let x = s.linspace(0.0f32, 23.0, 24).reshape([2, 3, 4]);
                let mean = x.mean([1, 2]);
                ((&x - &mean) * (&x - &mean)).mean([1, 2]).sqrt()
            },
            F32,
            &[2, 1],
            vec![6.904105059069326, 6.904105059069326],
        ),
    ]);
}

#[test]
fn reductions_of_nothing_give_identities() {
    use DType::*;
    run(vec![
        ("sum", |s| s.zeros::<f32>([0, 3]).sum(0), F32, &[1, 3], vec![0.0; 3]),
        ("prod", |s| s.zeros::<f32>([0, 3]).prod(0), F32, &[1, 3], vec![1.0; 3]),
        ("mean", |s| s.zeros::<f32>([0, 2]).mean(0), F32, &[1, 2], vec![NAN; 2]),
        ("any", |s| s.zeros::<f32>([0, 2]).any(0), Bool, &[1, 2], vec![0.0; 2]),
        ("all", |s| s.zeros::<f32>([0, 2]).all(0), Bool, &[1, 2], vec![1.0; 2]),
        ("count", |s| s.zeros::<f32>([0, 2]).count_nonzero(0), U32, &[1, 2], vec![0.0; 2]),
        ("sum along the other", |s| s.zeros::<f32>([0, 3]).sum(1), F32, &[0, 1], vec![]),
        ("elementwise", |s| s.zeros::<f32>([0, 3]).exp() + 1.0, F32, &[0, 3], vec![]),
        ("cumsum", |s| s.zeros::<f32>([0, 3]).cumsum(0), F32, &[0, 3], vec![]),
        (
            "matmul over no terms",
            |s| s.zeros::<f32>([2, 0]).matmul(&s.zeros::<f32>([0, 2])),
            F32,
            &[2, 2],
            vec![0.0; 4],
        ),
        (
            "cat with nothing",
            |s| tidemill::cat(1, &[&s.zeros::<f32>([1, 0]), &row(s, &[1.0f32])]).unwrap(),
            F32,
            &[1, 1],
            vec![1.0],
        ),
        ("sort", |s| s.zeros::<f32>([0, 3]).sort(0).0, F32, &[0, 3], vec![]),
        ("1 against 0 is 0", |s| s.zeros::<f32>([0, 3]) + row(s, &[1.0f32, 2.0, 3.0]), F32, &[0, 3], vec![]),
    ]);
}

#[test]
fn nothing_has_no_least_or_greatest_element_and_nothing_of_nothing_is_asked_for() {
    use tidemill::{ErrorKind, Nan, ReduceOp};
    let (_, rt) = runtimes().remove(0);
    let s = session(&rt);
    for op in [ReduceOp::Min, ReduceOp::Max, ReduceOp::ArgMin, ReduceOp::ArgMax] {
        for nan in [Nan::Include, Nan::Omit] {
            let of = |shape: [usize; 2], dim: usize| s.zeros::<f64>(shape).reduce(op, dim, nan);
            let error = of([0, 3], 0).checked().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{op:?}");
            assert!(error.message().contains("an array without elements has no least or greatest element"), "{error}");
            assert_eq!(of([0, 3], 1).shape().unwrap().dims(), [0, 1], "{op:?}");
            assert_eq!(of([0, 0], 0).shape().unwrap().dims(), [1, 0], "{op:?}");
        }
    }
}

#[test]
fn integer_ranges_reach_from_end_to_end_of_their_type() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let wide = s.arange(i64::MIN, i64::MAX, 1 << 62);
        let points = wait(wide.gather::<i64>()).unwrap();
        assert_eq!(points.as_slice(), [i64::MIN, -(1 << 62), 0, 1 << 62], "{device}");
        let down = s.arange(i32::MAX, i32::MIN, -1_500_000_000);
        let points = wait(down.gather::<i32>()).unwrap();
        assert_eq!(points.as_slice(), [i32::MAX, 647_483_647, -852_516_353], "{device}");
        let steep = s.arange(i32::MAX, i32::MIN, i32::MIN);
        assert_eq!(wait(steep.gather::<i32>()).unwrap().as_slice(), [i32::MAX, -1], "{device}");
        let fine = s.arange(i32::MIN, i32::MAX, 1 << 20);
        let points = wait(fine.gather::<i32>()).unwrap();
        let wanted: Vec<i32> = (0..4096).map(|i| (i64::from(i32::MIN) + (i << 20)) as i32).collect();
        assert_eq!(points.as_slice(), wanted, "{device}");
        let bytes = wait(s.arange(0u8, 255, 100).gather::<u8>()).unwrap();
        assert_eq!(bytes.as_slice(), [0, 100, 200], "{device}");
    }
}

#[test]
fn random_integers_fill_ranges_that_32_bits_do_not_span_alike_on_every_device() {
    let mut first: Option<Vec<i64>> = None;
    for (device, rt) in runtimes() {
        let s = session(&rt);
        for (low, high) in [(-5_000_000_000, 5_000_000_000), (i64::MIN, i64::MAX), (1 << 40, (1 << 40) + (1 << 33))] {
            let drawn = wait(s.randi::<i64>(low..high, [4000, 1]).gather::<i64>()).unwrap();
            assert!(drawn.iter().all(|x| (low..high).contains(x)), "{device}");
            // Each eighth of the range gets its share of the numbers, within five standard errors.
            let width = (high as i128 - low as i128) / 8;
            let mut shares = [0; 8];
            drawn.iter().for_each(|x| shares[(((*x as i128 - low as i128) / width) as usize).min(7)] += 1);
            assert!(shares.iter().all(|n| (395..605).contains(n)), "{device}: {shares:?}");
            // Low bits are random, too.
            let odd = drawn.iter().filter(|x| *x & 1 == 1).count();
            assert!((1840..2160).contains(&odd), "{device}: {odd} of 4000 are odd");
        }
        let wide = wait(s.randi::<f64>(0..1 << 60, [1000, 1]).mean(..).item::<f64>()).unwrap() / 2f64.powi(60);
        assert!((0.45..0.55).contains(&wide), "{device}: {wide}");
        let again = session(&rt);
        let drawn = wait(again.randi::<i64>(i64::MIN..i64::MAX, [100, 1]).gather::<i64>()).unwrap().into_vec();
        assert_eq!(first.get_or_insert_with(|| drawn.clone()), &drawn, "{device}");
        assert!(s.randi::<i32>(0..1 << 40, [2, 1]).error().is_some());
    }
}

#[test]
fn a_difference_along_a_dimension_that_the_array_lacks_is_an_error() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.arange(0.0f32, 6.0, 1.0).reshape([2, 3]);
        // A dimension of one element has no differences.
        let none = x.reshape([2, 3, 1, 1, 1]).diff(4);
        assert_eq!(none.shape().unwrap().dims(), [2, 3, 1, 1, 0], "{device}");
        for dim in [2, 4, 16, 17, usize::MAX] {
            let error = wait(x.diff(dim).gather_any()).unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("diff")), "{device}: {error}");
        }
    }
}

#[test]
fn scans_and_differences_run_along_a_dimension() {
    use DType::*;
    run(vec![
        ("cumsum over rows", |s| matrix(s).cumsum(0), F32, &[2, 3], vec![1.0, 5.0, 2.0, 7.0, 3.0, 9.0]),
        ("cumsum over columns", |s| matrix(s).cumsum(1), F32, &[2, 3], vec![1.0, 4.0, 3.0, 9.0, 6.0, 15.0]),
        ("cumsum from the end", |s| matrix(s).cumsum_reverse(1), F32, &[2, 3], vec![6.0, 15.0, 5.0, 11.0, 3.0, 6.0]),
        ("cumprod", |s| row(s, &[1.0f32, 2.0, 3.0]).cumprod(1), F32, &[1, 3], vec![1.0, 2.0, 6.0]),
        (
            "cummax omits NaN",
            |s| row(s, &[1.0f32, f32::NAN, 3.0, 2.0]).cummax(1),
            F32,
            &[1, 4],
            vec![1.0, 1.0, 3.0, 3.0],
        ),
        ("cummin", |s| row(s, &[3.0f32, 1.0, 2.0]).cummin(1), F32, &[1, 3], vec![3.0, 1.0, 1.0]),
        (
            "integers keep their class and saturate",
            |s| row(s, &[i32::MAX, 1, -1]).cumsum(1),
            I32,
            &[1, 3],
            vec![i32::MAX as f64, i32::MAX as f64, i32::MAX as f64 - 1.0],
        ),
        ("diff", |s| row(s, &[1.0f32, 4.0, 9.0]).diff(1), F32, &[1, 2], vec![3.0, 5.0]),
    ]);
}

#[test]
fn structure_ops_move_elements_and_nothing_else() {
    use DType::*;
    run(vec![
        ("transpose", |s| matrix(s).t(), F32, &[3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("reshape is column-major", |s| matrix(s).reshape([3, 2]), F32, &[3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        (
            "permute",
            |s| s.arange(0.0f32, 6.0, 1.0).reshape([1, 2, 3]).permute(&[2, 1, 0]),
            F32,
            &[3, 2],
            vec![0.0, 2.0, 4.0, 1.0, 3.0, 5.0],
        ),
        ("slice", |s| matrix(s).slice((0, 1..3)), F32, &[1, 2], vec![2.0, 3.0]),
        (
            "slice backwards",
            |s| s.arange(0.0f32, 6.0, 1.0).slice((.., tidemill::step(.., -2))),
            F32,
            &[1, 3],
            vec![5.0, 3.0, 1.0],
        ),
        ("flip", |s| matrix(s).flip(1), F32, &[2, 3], vec![3.0, 6.0, 2.0, 5.0, 1.0, 4.0]),
        (
            "repmat",
            |s| row(s, &[1.0f32, 2.0]).repmat(&[2, 2]),
            F32,
            &[2, 4],
            vec![1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0],
        ),
        ("broadcast_to", |s| column(s, &[1.0f32, 2.0]).broadcast_to([2, 2]), F32, &[2, 2], vec![1.0, 2.0, 1.0, 2.0]),
        (
            "cat of a product",
            |s| tidemill::cat(0, &[&(matrix(s) * 2.0), &matrix(s)]).unwrap(),
            F32,
            &[4, 3],
            vec![2.0, 8.0, 1.0, 4.0, 4.0, 10.0, 2.0, 5.0, 6.0, 12.0, 3.0, 6.0],
        ),
        ("circshift", |s| row(s, &[1.0f32, 2.0, 3.0]).circshift(&[0, 1]), F32, &[1, 3], vec![3.0, 1.0, 2.0]),
        ("tril", |s| (matrix(s) + 0.0).tril(0), F32, &[2, 3], vec![1.0, 4.0, 0.0, 5.0, 0.0, 0.0]),
        ("triu", |s| matrix(s).triu(1), F32, &[2, 3], vec![0.0, 0.0, 2.0, 0.0, 3.0, 6.0]),
        ("diag of a matrix", |s| matrix(s).diag(1), F32, &[2, 1], vec![2.0, 6.0]),
        (
            "diag of a vector",
            |s| column(s, &[1.0f32, 2.0]).diag(-1),
            F32,
            &[3, 3],
            vec![0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0],
        ),
        ("eye", |s| s.eye::<f32>(2) * 3.0, F32, &[2, 2], vec![3.0, 0.0, 0.0, 3.0]),
        ("linspace ends exactly", |s| s.linspace(0.0f32, 1.0, 4), F32, &[1, 4], vec![0.0, 0.33333334, 0.6666667, 1.0]),
        ("take", |s| row(s, &[10.0f32, 20.0, 30.0]).take(&row(s, &[2u32, 0])), F32, &[1, 2], vec![30.0, 10.0]),
        (
            "take along a dimension",
            |s| matrix(s).take_dim(1, &row(s, &[2i32, 2, 0])),
            F32,
            &[2, 3],
            vec![3.0, 6.0, 3.0, 6.0, 1.0, 4.0],
        ),
        (
            "take along the last dimension where the index is flat",
            |s| {
                let x = s.arange(0.0f32, 24.0, 1.0).reshape([2, 3, 4]);
                x.take_along(2, &(&x % 5).argmax(2))
            },
            F32,
            &[2, 3],
            vec![18.0, 19.0, 14.0, 9.0, 4.0, 23.0],
        ),
        (
            "points up to a stop that rounding reaches",
            |s| s.arange(0.0f32, 0.3, 0.1),
            F32,
            &[1, 3],
            vec![0.0, 0.1, 0.2],
        ),
        ("points at an infinite distance", |s| s.arange(2.0f32, 5.0, f32::INFINITY), F32, &[1, 1], vec![2.0]),
        (
            "points to infinity",
            |s| s.linspace(0.0f32, f32::INFINITY, 3),
            F32,
            &[1, 3],
            vec![0.0, f64::INFINITY, f64::INFINITY],
        ),
        ("assign a slice", |s| matrix(s).assign((0, 1..3), 9.0), F32, &[2, 3], vec![1.0, 4.0, 9.0, 5.0, 9.0, 6.0]),
        (
            "assign to zeros",
            |s| s.zeros::<f32>([4, 1]).assign((1..3, 0), column(s, &[1.0f32, 2.0])),
            F32,
            &[4, 1],
            vec![0.0, 1.0, 2.0, 0.0],
        ),
        (
            "the last of duplicates wins",
            |s| row(s, &[0.0f32, 0.0, 0.0]).assign_at(&row(s, &[1u32, 1, 2]), row(s, &[5.0f32, 6.0, 7.0])),
            F32,
            &[1, 3],
            vec![0.0, 6.0, 7.0],
        ),
        ("matmul", |s| matrix(s).matmul(&column(s, &[1.0f32, 1.0, 1.0])), F32, &[2, 1], vec![6.0, 15.0]),
        (
            "matmul in f64",
            |s| (matrix(s).cast::<f64>().t()).matmul(&column(s, &[1.0f64, 2.0])),
            F64,
            &[3, 1],
            vec![9.0, 12.0, 15.0],
        ),
    ]);
}

#[test]
fn sorting_is_stable_and_knows_nan() {
    use DType::*;
    run(vec![
        (
            "ascending, NaN last",
            |s| row(s, &[3.0f32, f32::NAN, 1.0, 2.0]).sort(1).0,
            F32,
            &[1, 4],
            vec![1.0, 2.0, 3.0, NAN],
        ),
        (
            "descending, NaN first",
            |s| row(s, &[3.0f32, f32::NAN, 1.0]).sort_descending(1).0,
            F32,
            &[1, 3],
            vec![NAN, 3.0, 1.0],
        ),
        (
            "indices of ties keep their order",
            |s| row(s, &[2i32, 1, 2, 1]).sort(1).1,
            U32,
            &[1, 4],
            vec![1.0, 3.0, 0.0, 2.0],
        ),
        (
            "descending ties too",
            |s| row(s, &[2i32, 1, 2, 1]).sort_descending(1).1,
            U32,
            &[1, 4],
            vec![0.0, 2.0, 1.0, 3.0],
        ),
        ("along rows", |s| matrix(s).sort_descending(0).0, F32, &[2, 3], vec![4.0, 1.0, 5.0, 2.0, 6.0, 3.0]),
    ]);
}

#[test]
fn nonzero_awaits_its_count() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let x = s.from_slice(&[0.0f32, 3.0, 0.0, -1.0, f32::NAN], [5, 1]).unwrap();
        let found = common::wait(x.nonzero()).unwrap();
        assert_array(&format!("nonzero on {device}"), &found, &[3, 1], &[1.0, 3.0, 4.0], 0.0);
        let none = common::wait((x * 0.0).gt(1.0).nonzero()).unwrap();
        assert_eq!(none.elements().unwrap(), 0, "on {device}");
    }
}

#[test]
fn integer_ranges_are_exact_and_sums_of_nothing_are_positive_zero() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let begin = (1i64 << 53) + 1;
        let range = s.arange(begin - 1, begin + 2, 1i64);
        assert_eq!(
            common::wait(range.gather::<i64>()).unwrap().as_slice(),
            [begin - 1, begin, begin + 1],
            "on {device}"
        );
        assert_eq!(s.arange(5i32, 0, -2).elements().unwrap(), 3, "on {device}");
        assert!(s.arange(0i32, 5, 0).error().is_some());
        for sum in [s.zeros::<f32>([0, 3]).sum(0), s.full(f32::NAN, [3, 1]).nan_sum(0)] {
            assert!(values(&sum).iter().all(|v| v.to_bits() == 0), "on {device}");
        }
    }
}

#[test]
fn sums_of_many_are_accurate_in_f32() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let ones = s.ones::<f32>([20_000_000, 1]).sum(..);
        assert_eq!(values(&ones), [2e7], "on {device}");
    }
}

#[test]
fn uniform_numbers_have_the_same_bits_on_every_device() {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for (_, runtime) in runtimes() {
        let s = session(&runtime);
        let mut bits = values(&s.rand::<f32>([1001, 3]));
        bits.extend(values(&s.rand::<f64>([77, 1])));
        bits.extend(values(&s.randi::<i32>(-5..1000, [513, 1])));
        all.push(bits);
    }
    for other in &all[1..] {
        assert_eq!(&all[0], other);
    }
}

#[test]
fn a_slice_that_is_assigned_from_the_array_itself_reads_what_was_there_before() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let own = s.from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
        let reversed = {
            let x = &own + 1.0;
            x.assign((step(.., -1), ..), &x)
        };
        assert_array(&format!("reversed on {device}"), &reversed, &[3, 2], &[4.0, 3.0, 2.0, 7.0, 6.0, 5.0], 0.0);
        let kept = &own + 1.0;
        wait(kept.eval()).unwrap();
        let reversed = kept.assign((step(.., -1), ..), &kept);
        drop(kept);
        assert_array(
            &format!("reversed, evaluated, on {device}"),
            &reversed,
            &[3, 2],
            &[4.0, 3.0, 2.0, 7.0, 6.0, 5.0],
            0.0,
        );
        let kept = &own + 1.0;
        wait(kept.eval()).unwrap();
        let back = s.from_vec(vec![5i32, 4, 3, 2, 1, 0], [6, 1]).unwrap();
        let scattered = kept.assign_at(&back, &kept);
        drop(kept);
        assert_array(&format!("scattered on {device}"), &scattered, &[3, 2], &[7.0, 6.0, 5.0, 4.0, 3.0, 2.0], 0.0);
        let kept = &own + 1.0;
        wait(kept.eval()).unwrap();
        let row = kept.slice((0, ..)) * 2.0;
        let spread = kept.assign((.., ..), &row);
        drop((row, kept));
        assert_array(
            &format!("a row of itself on {device}"),
            &spread,
            &[3, 2],
            &[4.0, 4.0, 4.0, 10.0, 10.0, 10.0],
            0.0,
        );
    }
}

#[test]
fn a_loop_that_updates_slices_from_themselves_copies_nothing() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let (rows, columns) = (3000, 12);
        let mut x = s.arange(0.0f32, 36_000.0, 1.0).reshape([rows, columns]) * 1.0;
        let mut expected = values(&x);
        let before = rt.stats().bytes_copied;
        for k in (0..columns).rev().step_by(2).chain([3, 3]) {
            let own = x.slice((.., k..k + 1));
            let new = &own * 2.0 - (&own + 3.0);
            drop(own);
            x = x.assign((.., k..k + 1), new);
            expected[k * rows..][..rows].iter_mut().for_each(|v| *v = *v * 2.0 - (*v + 3.0));
        }
        // Each column is computed from the column before, as in a recurrence, and from a row that does not change.
        for k in 1..columns {
            let next = x.slice((.., k - 1..k)) * 0.5 + x.slice((5..6, k - 1..k));
            x = x.assign((.., k..k + 1), next);
            let before = expected[(k - 1) * rows..][..rows].to_vec();
            (0..rows).for_each(|r| expected[k * rows + r] = before[r] * 0.5 + before[5]);
        }
        // Rows in reverse order are written to an array of their own, which lives beside `x` for a while.
        let other = x.slice((step(10..20, -1), ..)) + 1.0;
        assert_array(&format!("columns on {device}"), &x, &[rows, columns], &expected, 0.0);
        x = x.assign((10..20, ..), other);
        let old = expected.clone();
        (0..columns).flat_map(|c| (10..20).map(move |r| (r, c))).for_each(|(r, c)| {
            expected[c * rows + r] = old[c * rows + 29 - r] + 1.0;
        });
        assert_array(&format!("rows on {device}"), &x, &[rows, columns], &expected, 0.0);
        assert_eq!(rt.stats().bytes_copied, before, "{device}");
    }
}

#[test]
fn functions_of_one_computed_value_are_those_of_a_plain_one() {
    type Ours = fn(&tidemill::Array) -> tidemill::Array;
    type Plain = fn(f64) -> f64;
    let functions: [(&str, Ours, Plain); 14] = [
        ("tanh", |x| x.tanh(), f64::tanh),
        ("sinh", |x| x.sinh(), f64::sinh),
        ("cosh", |x| x.cosh(), f64::cosh),
        ("exp", |x| x.exp(), f64::exp),
        ("expm1", |x| x.expm1(), f64::exp_m1),
        ("log", |x| x.log(), f64::ln),
        ("log1p", |x| x.log1p(), f64::ln_1p),
        ("sin", |x| x.sin(), f64::sin),
        ("cos", |x| x.cos(), f64::cos),
        ("tan", |x| x.tan(), f64::tan),
        ("atan", |x| x.atan(), f64::atan),
        ("asinh", |x| x.asinh(), f64::asinh),
        ("sqrt", |x| x.sqrt(), f64::sqrt),
        ("round", |x| x.round(), f64::round),
    ];
    for (device, rt) in runtimes() {
        let s = session(&rt);
        for value in [0.3f32, 1.0, 2.0, 3.0, 5.0] {
            // A value that is the same in all invocations of a kernel, but not known when the kernel is compiled.
            let x = s.from_slice(&[value; 100], [100, 1]).unwrap().max_over(0) - 0.0;
            for (name, ours, plain) in functions {
                let got = wait(ours(&(&x + 0.0)).broadcast_to([100, 1]).gather::<f32>()).unwrap()[99];
                let wanted = plain(f64::from(value));
                let is_near = (f64::from(got) - wanted).abs() <= 1e-6 * wanted.abs();
                assert!(is_near, "{name}({value}) is {got} on {device}, and {wanted} was expected");
            }
        }
    }
}

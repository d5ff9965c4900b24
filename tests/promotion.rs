//! Tests how numbers and dtypes mix: every scalar type of Rust beside an array, and the ops that `Promotion::Strict`
//! refuses.

mod common;

use tidemill::{Array, ErrorKind, Operand, Promotion, Runtime, Session, cat};

fn runtime(promotion: Promotion) -> Runtime {
    Runtime::builder().device("host").promotion(promotion).start_blocking().unwrap()
}

fn session(rt: &Runtime) -> Session {
    rt.session("promotion").open()
}

fn f32s(x: &Array) -> Vec<f32> {
    x.gather_blocking::<f32>().unwrap().as_slice().to_vec()
}

#[test]
fn every_scalar_type_of_rust_stands_on_the_right_of_an_array() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    let x = s.from_slice(&[2.0f32, 6.0], 2).unwrap();
    macro_rules! each {
        ($($ty:ty),*) => {$(
            let n = 2 as $ty;
            assert_eq!(f32s(&(&x / n)), [1.0, 3.0], stringify!($ty));
            assert_eq!(f32s(&(x.clone() * n)), [4.0, 12.0], stringify!($ty));
            assert_eq!(f32s(&(Operand::from(n) - &x)), [0.0, -4.0], stringify!($ty));
            assert_eq!(f32s(&(Operand::from(n) + x.clone())), [4.0, 8.0], stringify!($ty));
            assert_eq!(f32s(&x.max(n)), [2.0, 6.0], stringify!($ty));
            let mut y = x.clone();
            y -= n;
            assert_eq!(f32s(&y), [0.0, 4.0], stringify!($ty));
        )*};
    }
    each!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, usize, isize);
    assert_eq!(f32s(&(&x * true)), [2.0, 6.0]);
    assert_eq!(f32s(&(true + &x)), [3.0, 7.0]);
    assert_eq!(f32s(&(2.0 * &x)), f32s(&(2 * &x)));
    // A literal on the left of an operator gives a known type, on which a method can be called.
    assert_eq!(f32s(&(1.0 - &x).abs()), [1.0, 5.0]);
    rt.shutdown_blocking().unwrap();
}

#[test]
fn whole_numbers_beside_wide_integers_are_exact() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    let x = s.from_slice(&[(1i64 << 53) + 1, -5], 2).unwrap();
    let exact = (&x + 2u64).gather_blocking::<i64>().unwrap();
    assert_eq!(exact.as_slice(), [(1i64 << 53) + 3, -3]);
    let exact = (&x + usize::try_from(i64::MAX / 2).unwrap()).gather_blocking::<i64>().unwrap();
    assert_eq!(exact.as_slice(), [(1i64 << 53) + 1 + i64::MAX / 2, i64::MAX / 2 - 5]);
    let small = s.from_slice(&[250u8, 3], 2).unwrap();
    assert_eq!((&small + 10u16).gather_blocking::<u8>().unwrap().as_slice(), [255, 13]);
    assert_eq!((&small - 300isize).gather_blocking::<u8>().unwrap().as_slice(), [0, 0]);
    rt.shutdown_blocking().unwrap();
}

#[test]
fn a_number_above_every_dtype_is_rounded_beside_floats_compared_as_it_is_and_a_fault_beside_integers() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    let x = s.from_slice(&[u64::MAX as f64, 1.0], 2).unwrap();
    assert_eq!((&x / u64::MAX).gather_blocking::<f64>().unwrap().as_slice(), [1.0, 1.0 / u64::MAX as f64]);
    let whole = s.from_slice(&[i64::MAX, -1], 2).unwrap();
    assert_eq!(whole.lt(u64::MAX).gather_blocking::<bool>().unwrap().as_slice(), [true, true]);
    for faulty in [&whole + u64::MAX, whole.max(usize::MAX), whole.assign((0..1,), u64::MAX)] {
        let error = faulty.error().expect("no dtype holds it");
        assert_eq!(error.kind(), ErrorKind::DType);
        assert!(error.message().contains("18446744073709551615"), "{error}");
        assert!(error.to_string().contains("tests/promotion.rs"), "{error}");
    }
    rt.shutdown_blocking().unwrap();
}

/// Arrays of every dtype, of two elements.
struct All {
    f32: Array,
    f64: Array,
    bool: Array,
    u8: Array,
    i32: Array,
    u32: Array,
    i64: Array,
}

fn all(s: &Session) -> All {
    All {
        f32: s.ones::<f32>(2),
        f64: s.ones::<f64>(2),
        bool: s.ones::<bool>(2),
        u8: s.ones::<u8>(2),
        i32: s.ones::<i32>(2),
        u32: s.ones::<u32>(2),
        i64: s.ones::<i64>(2),
    }
}

#[test]
fn strict_promotion_refuses_by_name_what_would_lose_digits_or_range() {
    let rt = runtime(Promotion::Strict);
    let s = session(&rt);
    let x = all(&s);
    let half = s.scalar(0.5f64);
    let refused: Vec<(&str, Array, [&str; 2])> = vec![
        ("f32 + f64", &x.f32 + &x.f64, ["f32", "f64"]),
        ("f64 - f32", &x.f64 - &x.f32, ["f32", "f64"]),
        ("f32 < f64", x.f32.lt(&x.f64), ["f32", "f64"]),
        ("hypot", x.f32.hypot(&x.f64), ["f32", "f64"]),
        ("select", x.bool.select(&x.f32, &x.f64), ["f32", "f64"]),
        ("i32 * 0.5", &x.i32 * 0.5, ["i32", "0.5"]),
        ("0.5 * i32", 0.5 * &x.i32, ["i32", "0.5"]),
        ("i32 + NaN", &x.i32 + f64::NAN, ["i32", "NaN"]),
        ("u8 - 300", &x.u8 - 300, ["u8", "300"]),
        ("u8 + -1", &x.u8 + -1, ["u8", "-1"]),
        ("i64 * 0.5", &x.i64 * 0.5, ["i64", "0.5"]),
        ("i64 + scalar f64", &x.i64 + &half, ["i64", "f64"]),
        ("i32 * scalar f64", &x.i32 * &half, ["i32", "f64"]),
        ("i64 + 2^63", &x.i64 + 9_223_372_036_854_775_808.0, ["i64", "9.223372036854776e18"]),
        ("clamp", x.i32.clamp(0.5, 3.0), ["i32", "0.5"]),
        ("f32 * 1e300", &x.f32 * 1e300, ["f32", "1e300"]),
        ("f32 * 1e-300", &x.f32 * 1e-300, ["f32", "1e-300"]),
        ("f32 + 2^24 + 1", &x.f32 + 16_777_217u32, ["f32", "16777217"]),
        ("f64 + 2^53 + 1", &x.f64 + 9_007_199_254_740_993u64, ["f64", "9007199254740993"]),
        ("f64 + u64::MAX", &x.f64 + u64::MAX, ["f64", "18446744073709551615"]),
        ("sin(i64)", x.i64.sin(), ["i64", "f64"]),
        ("sum(i64)", x.i64.sum(..), ["i64", "f64"]),
        ("mean(i64)", x.i64.mean(..), ["i64", "f64"]),
        ("dot", x.f32.dot(&x.f64, ..), ["f32", "f64"]),
        ("matmul", x.i64.t().matmul(&x.i64), ["i64", "f64"]),
        ("assign", x.f32.assign((0..1,), &half), ["f32", "f64"]),
        ("assign 1.5", x.i32.assign((0..1,), 1.5), ["i32", "1.5"]),
        ("assign_at", x.u8.assign_at(&s.zeros::<u32>(1), 256), ["u8", "256"]),
        (
            "f32 += f64",
            {
                let mut y = x.f32.clone();
                y += &x.f64;
                y
            },
            ["f32", "f64"],
        ),
    ];
    for (what, array, names) in &refused {
        let error = array.error().unwrap_or_else(|| panic!("{what} was accepted"));
        assert_eq!(error.kind(), ErrorKind::DType, "{what}: {error}");
        assert!(names.iter().all(|name| error.message().contains(name)), "{what}: {error}");
        assert!(error.message().contains("cast::<"), "{what}: {error}");
        assert!(error.op().is_some() && error.to_string().contains("tests/promotion.rs"), "{what}: {error}");
    }
    let joined = cat(0, &[&x.f32, &x.f64]).unwrap_err();
    assert_eq!(joined.kind(), ErrorKind::DType);
    rt.shutdown_blocking().unwrap();
}

#[test]
fn strict_promotion_accepts_what_loses_nothing_and_computes_the_same() {
    let [strict, matlab] = [Promotion::Strict, Promotion::Matlab].map(runtime);
    let made = |rt: &Runtime| -> Vec<Vec<f64>> {
        let s = session(rt);
        let x = all(&s);
        let accepted = [
            &x.f32 * 0.1,
            &x.f32 * f64::INFINITY,
            &x.f32 + 16_777_216,
            1.0 - &x.f32,
            &x.f64 * 0.1 + 3u8,
            &x.i32 * 2.0,
            &x.i64 + 9_007_199_254_740_993u64,
            &x.u8 + 255,
            &x.bool + &x.bool,
            &x.bool * &x.f32,
            x.u8.sin(),
            x.i32.sum(..),
            x.i64.sum_native(..),
            x.i64.cast::<f64>().sum(..),
            &x.f32.cast::<f64>() * &x.f64,
            x.i64.lt(&x.f64),
            x.i32.lt(0.5),
            x.u32.eq_to(&x.i64),
            x.bool.select(&x.i32, 3),
            x.f64.assign((0..1,), x.i32.slice((0..1,))),
            x.f32.dot(&x.f32, ..),
            x.f32.var(..),
            x.i32.gamma(),
            x.i64.max_over(..),
            cat(0, &[&x.f64, &x.f64]).unwrap(),
        ];
        let values = accepted.iter().map(|x| x.cast::<f64>().gather_blocking::<f64>());
        values.map(|x| x.unwrap().as_slice().to_vec()).collect()
    };
    assert_eq!(made(&strict), made(&matlab));
    // The errors that MATLAB gives as well do not change.
    let s = session(&strict);
    let error = (s.ones::<i32>(2) + s.ones::<u8>(2)).error().cloned().unwrap();
    assert!(error.message().contains("different integer classes"), "{error}");
    [strict, matlab].into_iter().for_each(|rt| rt.shutdown_blocking().unwrap());
}

#[test]
fn a_session_may_choose_and_the_first_operands_fault_wins() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    let (a, b) = (s.ones::<f32>(2), s.ones::<f64>(2));
    assert_eq!((&a + &b).dtype().unwrap(), tidemill::DType::F32);
    s.set_promotion(Promotion::Strict);
    assert_eq!((&a + &b).error().unwrap().kind(), ErrorKind::DType);
    let faulty = s.ones::<f64>([2, 3]) + s.ones::<f64>([3, 2]);
    assert_eq!((&faulty + &a).error().unwrap().kind(), ErrorKind::Shape);
    rt.shutdown_blocking().unwrap();
}

#[test]
fn a_dimension_that_an_array_lacks_is_an_error_in_every_function_that_names_one() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    for x in [s.ones::<f32>([4, 3]), s.scalar(1.0f32), s.zeros::<f32>([0, 3]), s.ones::<f32>([40, 30]) * 2.0] {
        let index = s.zeros::<u32>(1);
        let lacking: Vec<(&str, Array)> = vec![
            ("sum", x.sum(7)),
            ("sum at the rank", x.sum(2)),
            ("sum of a list", x.sum([0, 7])),
            ("sum of a slice", x.sum(&[1, 16][..])),
            ("far", x.sum(usize::MAX)),
            ("prod", x.prod(3)),
            ("mean", x.nan_mean(2)),
            ("var", x.var(2)),
            ("std", x.std_population(2)),
            ("min_over", x.min_over(5)),
            ("argmax", x.argmax(2)),
            ("any", x.any(2)),
            ("all", x.all([2])),
            ("count_nonzero", x.count_nonzero(2)),
            ("norm", x.norm(9)),
            ("sum_native", x.sum_native(2)),
            ("dot", x.dot(&x, 2)),
            ("cumsum", x.cumsum(2)),
            ("cummax", x.cummax_reverse(64)),
            ("cumprod", x.nan_cumprod(17)),
            ("diff", x.diff(2)),
            ("sort", x.sort(2).0),
            ("sort's places", x.sort_descending(usize::MAX).1),
            ("argsort", x.argsort(3)),
            ("flip", x.flip(2)),
            ("circshift", x.circshift(&[0, 0, 1])),
            ("slice", x.slice((.., .., 0))),
            ("slice of ranges", x.slice((.., .., ..))),
            ("take_dim", x.take_dim(2, &index)),
            ("assign", x.assign((.., .., 0..1), 1.0)),
            ("assign_dim", x.assign_dim(2, &index, 1.0)),
        ];
        for (what, array) in &lacking {
            let error = array.error().unwrap_or_else(|| panic!("{what} of {:?} was accepted", x.shape()));
            assert_eq!(error.kind(), ErrorKind::Index, "{what}: {error}");
            assert!(error.message().contains("dimension"), "{what}: {error}");
        }
        assert_eq!(cat(3, &[&x, &x]).unwrap_err().kind(), ErrorKind::Index);
        // `cat` may name the next dimension, and makes it.
        assert!(cat(2, &[&x, &x]).is_ok());
    }
    rt.shutdown_blocking().unwrap();
}

#[test]
fn a_dimension_of_one_element_that_was_named_is_one_whatever_became_of_the_array() {
    let rt = runtime(Promotion::Matlab);
    let s = session(&rt);
    for pages in [1, 2] {
        let x = s.full(2.0f32, [40, 30, pages]);
        let total = 40.0 * 30.0 * 2.0 * pages as f32;
        let made = [
            ("as it is", x.clone()),
            ("an op", (&x * 1.0 + &x) / 2),
            ("with fewer", s.zeros::<f32>([40, 30]) + &x),
            ("a cast", x.cast::<f64>().cast::<f32>()),
            ("reshaped", s.full(2.0f32, [1200, pages]).reshape([40, 30, pages])),
            ("transposed", x.transpose()),
            ("tiled", s.full(2.0f32, [40, 30]).repmat(&[1, 1, pages])),
            ("joined", cat(2, &vec![&s.full(2.0f32, [40, 30]); pages]).unwrap()),
            ("sliced", x.slice((.., ..))),
            ("flipped", x.flip(2)),
            ("sorted", x.sort(2).0),
            ("picked", x.take_dim(2, &s.from_vec((0..pages as u32).collect(), pages).unwrap())),
            ("selected", x.gt(0.0).select(&x, 0.0)),
        ];
        for (what, y) in made {
            assert!(y.sum(2).error().is_none(), "{what}: {:?}", y.sum(2).error());
            assert_eq!(y.sum(2).sum(2).sum([0, 1, 2]).item_blocking(), total, "{what}");
            assert_eq!(y.slice((.., .., 0)).sum(..).item_blocking(), 2400.0, "{what}");
        }
    }
    rt.shutdown_blocking().unwrap();
}

trait ItemBlocking {
    fn item_blocking(&self) -> f32;
}

impl ItemBlocking for Array {
    fn item_blocking(&self) -> f32 {
        self.gather_blocking::<f32>().unwrap()[0]
    }
}

//! Elementwise ops over blocks of host memory.
//!
//! In: typed blocks or scalars of one dtype. Out: a block. A unary op of a scalar is computed once; binary ops have
//! loops for a scalar on either side. Ops of three operands, and those with a rare slow case, cut blocks into pieces of
//! `PIECE` elements: a scalar is spread over a piece once, so that one loop serves blocks and scalars.
//!
//! Must hold: ELEM-1: there are as many arguments as the op's arity says, with dtypes that its rule yields; blocks are
//! 64-byte aligned and hold at least `n` elements. ELEM-3: the result for an element does not depend on its place in a
//! block.

use super::host_cast;
use super::loops::{self, Binary, Ternary, Unary};
use crate::graph::semantics::*;
use crate::graph::table::op_table;
use crate::graph::{DType, ElementOp, Scalar};
use std::mem::MaybeUninit;

/// An argument: a block of elements, or one number for all.
#[derive(Clone, Copy, Debug)]
pub enum HostArg<'a> {
    /// Elements in memory, 64-byte aligned.
    Block(&'a [u8]),
    /// A number that is the same for all elements.
    Scalar(Scalar),
}

/// Elements that are computed at a time. A piece that repeats a scalar stays in the first-level cache.
const PIECE: usize = 512;

/// A type as which a block's memory is read. Bools are read as bytes of 0 or 1.
pub(super) trait Stored: Copy + 'static {
    fn of(scalar: Scalar) -> Self;
}

macro_rules! stored {
    ($($ty:ty => $($variant:ident)|+),*) => {$(
        impl Stored for $ty {
            fn of(scalar: Scalar) -> $ty {
                match scalar {
                    $(Scalar::$variant(value) => value as $ty,)+
                    other => panic!("ELEM-1: a scalar of {} in a block of {}", other.dtype(), stringify!($ty)),
                }
            }
        }
    )*};
}
stored!(f32 => F32, f64 => F64, u8 => U8 | Bool, i32 => I32, u32 => U32, i64 => I64);

/// Memory for a scalar that is repeated in a piece. It is written only if an argument is a scalar.
type Spread<T> = [MaybeUninit<T>; PIECE];

const fn spread<T: Copy>() -> Spread<T> {
    [const { MaybeUninit::uninit() }; PIECE]
}

/// One argument, piece by piece.
#[derive(Clone, Copy)]
enum Pieces<'a, T> {
    Block(&'a [T]),
    /// One piece, filled with the scalar, which serves for all pieces.
    Scalar(&'a [T]),
}

impl<'a, T: Stored> Pieces<'a, T> {
    fn new(arg: HostArg<'a>, n: usize, spread: &'a mut Spread<T>) -> Pieces<'a, T> {
        match arg {
            HostArg::Block(bytes) => Pieces::Block(typed::<T>(bytes, n)),
            HostArg::Scalar(scalar) => {
                let piece = &mut spread[..n.min(PIECE)];
                piece.fill(MaybeUninit::new(T::of(scalar)));
                // SAFETY: the piece was just written.
                Pieces::Scalar(unsafe { std::slice::from_raw_parts(piece.as_ptr().cast(), piece.len()) })
            }
        }
    }

    fn at(&self, begin: usize, end: usize) -> &[T] {
        match self {
            Pieces::Block(block) => &block[begin..end],
            Pieces::Scalar(piece) => &piece[..end - begin],
        }
    }
}

/// The first `n` elements of a block.
pub(super) fn typed<T: Stored>(bytes: &[u8], n: usize) -> &[T] {
    check_block::<T>(bytes.as_ptr(), bytes.len(), n);
    // SAFETY: `check_block` has checked length and alignment; `Stored` types are plain numbers.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), n) }
}

/// The first `n` elements of a block, for writing.
pub(super) fn typed_mut<T: Stored>(bytes: &mut [u8], n: usize) -> &mut [T] {
    check_block::<T>(bytes.as_ptr(), bytes.len(), n);
    // SAFETY: as in `typed`, and the bytes are borrowed exclusively.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), n) }
}

fn check_block<T>(at: *const u8, bytes: usize, n: usize) {
    assert!(bytes >= n * size_of::<T>(), "ELEM-1: a block of {bytes} bytes for {n} elements");
    assert!(at.align_offset(align_of::<T>()) == 0, "ELEM-1: a block that is not aligned");
}

fn each_piece(n: usize, mut run: impl FnMut(usize, usize)) {
    let mut begin = 0;
    while begin < n {
        let end = (begin + PIECE).min(n);
        run(begin, end);
        begin = end;
    }
}

/// The arguments and destination of a call.
pub(super) struct Call<'a, 'b> {
    op: ElementOp,
    pub(super) input: DType,
    pub(super) output: DType,
    args: &'a [HostArg<'a>],
    out: &'b mut [u8],
    n: usize,
}

impl Call<'_, '_> {
    pub(super) fn map1<A: Stored, R: Stored, O: Unary<A, R>>(&mut self) {
        let out = typed_mut::<R>(self.out, self.n);
        match self.args[0] {
            HostArg::Block(bytes) => loops::unary::<A, R, O>(typed(bytes, self.n), out),
            HostArg::Scalar(scalar) => out.fill(O::eval(A::of(scalar))),
        }
    }

    fn map1_rare<A: Stored, T: Unary<A, bool>, O: Unary<A, A>, S: Unary<A, A>>(&mut self) {
        let mut spread_a = spread();
        let a = Pieces::<A>::new(self.args[0], self.n, &mut spread_a);
        let out = typed_mut::<A>(self.out, self.n);
        each_piece(self.n, |begin, end| {
            let (a, out) = (a.at(begin, end), &mut out[begin..end]);
            loops::unary::<A, A, O>(a, out);
            if loops::any::<A, T>(a) {
                for (result, &x) in out.iter_mut().zip(a) {
                    if T::eval(x) {
                        *result = S::eval(x);
                    }
                }
            }
        });
    }

    fn map2<A: Stored, R: Stored, O: Binary<A, R>>(&mut self) {
        let (one_a, one_b);
        let a = match self.args[0] {
            HostArg::Block(bytes) => typed::<A>(bytes, self.n),
            HostArg::Scalar(scalar) => {
                one_a = [A::of(scalar)];
                &one_a
            }
        };
        let b = match self.args[1] {
            HostArg::Block(bytes) => typed::<A>(bytes, self.n),
            HostArg::Scalar(scalar) => {
                one_b = [A::of(scalar)];
                &one_b
            }
        };
        loops::binary::<A, R, O>(a, b, typed_mut::<R>(self.out, self.n));
    }

    fn map2_rare<A: Stored, T: Binary<A, bool>, O: Binary<A, A>, S: Binary<A, A>>(&mut self) {
        let (mut spread_a, mut spread_b) = (spread(), spread());
        let a = Pieces::<A>::new(self.args[0], self.n, &mut spread_a);
        let b = Pieces::<A>::new(self.args[1], self.n, &mut spread_b);
        let out = typed_mut::<A>(self.out, self.n);
        each_piece(self.n, |begin, end| {
            let (a, b, out) = (a.at(begin, end), b.at(begin, end), &mut out[begin..end]);
            loops::binary::<A, A, O>(a, b, out);
            if loops::any_pair::<A, T>(a, b) {
                for ((result, &x), &y) in out.iter_mut().zip(a).zip(b) {
                    if T::eval(x, y) {
                        *result = S::eval(x, y);
                    }
                }
            }
        });
    }

    fn map3<M: Stored, A: Stored, R: Stored, O: Ternary<M, A, R>>(&mut self) {
        let (mut spread_m, mut spread_a, mut spread_b) = (spread(), spread(), spread());
        let m = Pieces::<M>::new(self.args[0], self.n, &mut spread_m);
        let a = Pieces::<A>::new(self.args[1], self.n, &mut spread_a);
        let b = Pieces::<A>::new(self.args[2], self.n, &mut spread_b);
        let out = typed_mut::<R>(self.out, self.n);
        each_piece(self.n, |begin, end| {
            loops::ternary::<M, A, R, O>(m.at(begin, end), a.at(begin, end), b.at(begin, end), &mut out[begin..end])
        });
    }

    fn wrong_dtype(&self) -> ! {
        panic!("ELEM-1: {} of {} to {}", self.op.name(), self.input, self.output)
    }
}

// Each of these macros makes a zero-sized type that calls the row's function, so that the loops are compiled for that
// function.

macro_rules! map1 {
    ($call:ident, $a:ty, $r:ty, |$x:ident| $value:expr) => {{
        struct Op;
        impl Unary<$a, $r> for Op {
            #[inline(always)]
            fn eval($x: $a) -> $r {
                $value
            }
        }
        $call.map1::<$a, $r, Op>()
    }};
}

macro_rules! map2 {
    ($call:ident, $a:ty, $r:ty, |$x:ident, $y:ident| $value:expr) => {{
        struct Op;
        impl Binary<$a, $r> for Op {
            #[inline(always)]
            fn eval($x: $a, $y: $a) -> $r {
                $value
            }
        }
        $call.map2::<$a, $r, Op>()
    }};
}

macro_rules! map1_rare {
    ($call:ident, $a:ty, $f:path, $test:path, $slow:path) => {{
        struct Op;
        impl Unary<$a, $a> for Op {
            #[inline(always)]
            fn eval(x: $a) -> $a {
                $f(x)
            }
        }
        struct Slow;
        impl Unary<$a, $a> for Slow {
            fn eval(x: $a) -> $a {
                $slow(x)
            }
        }
        struct Test;
        impl Unary<$a, bool> for Test {
            #[inline(always)]
            fn eval(x: $a) -> bool {
                $test(x)
            }
        }
        $call.map1_rare::<$a, Test, Op, Slow>()
    }};
}

macro_rules! map2_rare {
    ($call:ident, $a:ty, $f:path, $test:path, $slow:path) => {{
        struct Op;
        impl Binary<$a, $a> for Op {
            #[inline(always)]
            fn eval(x: $a, y: $a) -> $a {
                $f(x, y)
            }
        }
        struct Slow;
        impl Binary<$a, $a> for Slow {
            fn eval(x: $a, y: $a) -> $a {
                $slow(x, y)
            }
        }
        struct Test;
        impl Binary<$a, bool> for Test {
            #[inline(always)]
            fn eval(x: $a, y: $a) -> bool {
                $test(x, y)
            }
        }
        $call.map2_rare::<$a, Test, Op, Slow>()
    }};
}

macro_rules! map3 {
    ($call:ident, $m:ty, $a:ty, |$z:ident, $x:ident, $y:ident| $value:expr) => {{
        struct Op;
        impl Ternary<$m, $a, $a> for Op {
            #[inline(always)]
            fn eval($z: $m, $x: $a, $y: $a) -> $a {
                $value
            }
        }
        $call.map3::<$m, $a, $a, Op>()
    }};
}

/// Runs a row's body on the call's dtypes.
macro_rules! run_body {
    ($c:ident, real1 $f:path) => {
        match $c.input {
            DType::F32 => map1!($c, f32, f32, |x| $f(x)),
            DType::F64 => map1!($c, f64, f64, |x| $f(x)),
            _ => $c.wrong_dtype(),
        }
    };
    ($c:ident, real1 $f:path | $test:path, $slow:path) => {
        match $c.input {
            DType::F32 => map1_rare!($c, f32, $f, $test, $slow),
            DType::F64 => map1_rare!($c, f64, $f, $test, $slow),
            _ => $c.wrong_dtype(),
        }
    };
    ($c:ident, real2 $f:path) => {
        match $c.input {
            DType::F32 => map2!($c, f32, f32, |x, y| $f(x, y)),
            DType::F64 => map2!($c, f64, f64, |x, y| $f(x, y)),
            _ => $c.wrong_dtype(),
        }
    };
    ($c:ident, number1 $f:path, $i:path) => {
        match $c.input {
            DType::F32 => map1!($c, f32, f32, |x| $f(x)),
            DType::F64 => map1!($c, f64, f64, |x| $f(x)),
            DType::U8 => map1!($c, u8, u8, |x| $i(x)),
            DType::I32 => map1!($c, i32, i32, |x| $i(x)),
            DType::U32 => map1!($c, u32, u32, |x| $i(x)),
            DType::I64 => map1!($c, i64, i64, |x| $i(x)),
            DType::Bool => $c.wrong_dtype(),
        }
    };
    ($c:ident, number2 $f:path, $i:path) => {
        match $c.input {
            DType::F32 => map2!($c, f32, f32, |x, y| $f(x, y)),
            DType::F64 => map2!($c, f64, f64, |x, y| $f(x, y)),
            _ => run_body!($c, whole2 $i),
        }
    };
    ($c:ident, number2 $f:path | $test:path, $slow:path, $i:path) => {
        match $c.input {
            DType::F32 => map2_rare!($c, f32, $f, $test, $slow),
            DType::F64 => map2_rare!($c, f64, $f, $test, $slow),
            _ => run_body!($c, whole2 $i),
        }
    };
    ($c:ident, whole2 $i:path) => {
        match $c.input {
            DType::U8 => map2!($c, u8, u8, |x, y| $i(x, y)),
            DType::I32 => map2!($c, i32, i32, |x, y| $i(x, y)),
            DType::U32 => map2!($c, u32, u32, |x, y| $i(x, y)),
            DType::I64 => map2!($c, i64, i64, |x, y| $i(x, y)),
            _ => $c.wrong_dtype(),
        }
    };
    ($c:ident, number3 $f:path, $i:path) => {
        match $c.input {
            DType::F32 => map3!($c, f32, f32, |x, y, z| $f(x, y, z)),
            DType::F64 => map3!($c, f64, f64, |x, y, z| $f(x, y, z)),
            DType::U8 => map3!($c, u8, u8, |x, y, z| $i(x, y, z)),
            DType::I32 => map3!($c, i32, i32, |x, y, z| $i(x, y, z)),
            DType::U32 => map3!($c, u32, u32, |x, y, z| $i(x, y, z)),
            DType::I64 => map3!($c, i64, i64, |x, y, z| $i(x, y, z)),
            DType::Bool => $c.wrong_dtype(),
        }
    };
    ($c:ident, test1 $f:path, $i:path) => {
        match $c.input {
            DType::F32 => map1!($c, f32, u8, |x| $f(x) as u8),
            DType::F64 => map1!($c, f64, u8, |x| $f(x) as u8),
            DType::U8 | DType::Bool => map1!($c, u8, u8, |x| $i(x) as u8),
            DType::I32 => map1!($c, i32, u8, |x| $i(x) as u8),
            DType::U32 => map1!($c, u32, u8, |x| $i(x) as u8),
            DType::I64 => map1!($c, i64, u8, |x| $i(x) as u8),
        }
    };
    ($c:ident, compare $f:path) => {
        match $c.input {
            DType::F32 => map2!($c, f32, u8, |x, y| $f(x, y) as u8),
            DType::F64 => map2!($c, f64, u8, |x, y| $f(x, y) as u8),
            DType::U8 | DType::Bool => map2!($c, u8, u8, |x, y| $f(x, y) as u8),
            DType::I32 => map2!($c, i32, u8, |x, y| $f(x, y) as u8),
            DType::U32 => map2!($c, u32, u8, |x, y| $f(x, y) as u8),
            DType::I64 => map2!($c, i64, u8, |x, y| $f(x, y) as u8),
        }
    };
    ($c:ident, logic1 $f:path) => {
        map1!($c, u8, u8, |x| $f(x != 0) as u8)
    };
    ($c:ident, logic2 $f:path) => {
        map2!($c, u8, u8, |x, y| $f(x != 0, y != 0) as u8)
    };
    ($c:ident, select) => {
        match $c.input {
            DType::F32 => map3!($c, u8, f32, |m, x, y| Lane::select(m != 0, x, y)),
            DType::F64 => map3!($c, u8, f64, |m, x, y| Lane::select(m != 0, x, y)),
            DType::U8 | DType::Bool => map3!($c, u8, u8, |m, x, y| Lane::select(m != 0, x, y)),
            DType::I32 => map3!($c, u8, i32, |m, x, y| Lane::select(m != 0, x, y)),
            DType::U32 => map3!($c, u8, u32, |m, x, y| Lane::select(m != 0, x, y)),
            DType::I64 => map3!($c, u8, i64, |m, x, y| Lane::select(m != 0, x, y)),
        }
    };
    ($c:ident, cast) => {
        host_cast::run(&mut $c)
    };
}

macro_rules! derive_apply {
    ($([$variant:ident, $name:literal, $arity:literal, $doc:literal
        rule $rule:ident; cost { $cost:expr }; body { $($body:tt)* }; fast { $fast:expr }; gradient { $gradient:expr };
        examples { $examples:expr }])*) => {
        fn dispatch(mut call: Call<'_, '_>) {
            match call.op {
                $(ElementOp::$variant => run_body!(call, $($body)*),)*
            }
        }
    };
}
op_table! { derive_apply }

/// `out[i] = op(args[0][i], ..)` for `n` elements. Arguments have dtype `input` (except the mask of `Select`, which is
/// bool). The result has dtype `output`: bool for tests, comparisons and logic, the target for `Cast`, otherwise that
/// of the input.
///
/// # Panics
/// ELEM-1, if the arguments do not fit the op's rule.
pub fn apply(op: ElementOp, input: DType, output: DType, args: &[HostArg<'_>], out: &mut [u8], n: usize) {
    assert!(args.len() == op.arity(), "ELEM-1: {} of {} arguments", op.name(), args.len());
    dispatch(Call { op, input, output, args, out, n });
}

/// Applies the op to single numbers, with the same bits as [`apply`].
///
/// # Panics
/// As [`apply`].
pub fn apply_scalar(op: ElementOp, input: DType, output: DType, args: &[Scalar]) -> Scalar {
    let mut bits = [0u64; 1];
    let args: smallvec::SmallVec<[HostArg<'_>; 3]> = args.iter().map(|&s| HostArg::Scalar(s)).collect();
    apply(op, input, output, &args, bytemuck::bytes_of_mut(&mut bits), 1);
    Scalar::from_bits(output, u64::from_le_bytes(*bytemuck::cast_ref(&bits)))
}

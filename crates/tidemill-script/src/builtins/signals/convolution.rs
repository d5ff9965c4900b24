//! Convolutions of matrices.
//!
//! In: two matrices, or a matrix, and the column and row whose product is the other matrix. Out: the whole convolution,
//! or a part of it. With a GPU, large matrices stay on the runtime, as a sum of shifted products, which fuse.

use crate::builtins::linear::factors::{complex_value, real, value_of};
use crate::builtins::record::{is_big, lift, record};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Dims, Tensor, Value};
use crate::vm::Interp;
use faer::Mat;
use num_complex::Complex64;

/// The functions.
pub static ROWS: &[Builtin] = &[row(
    "conv2",
    2,
    4,
    1,
    "conv2 (a, b, shape), conv2 (column, row, a, shape)",
    "The convolution of two matrices, or of one by columns and by rows.",
    conv2,
)];

/// The most elements of a kernel whose products are recorded one by one.
const KERNEL_MAX: usize = 256;

/// The part of a convolution.
#[derive(Clone, Copy)]
enum Part {
    /// All of it.
    Full,
    /// The middle, which is as large as the first matrix.
    Same,
    /// The elements that do not depend on zeros beyond the edge.
    Valid,
}

impl Part {
    fn of(word: &Value) -> Flow<Part> {
        match word.as_bytes() {
            Some(b"full") => Ok(Part::Full),
            Some(b"same") => Ok(Part::Same),
            Some(b"valid") => Ok(Part::Valid),
            _ => fail!("conv2: SHAPE type not valid"),
        }
    }

    /// For a dimension of `a` and `b` elements: returns the beginning of the part in the whole convolution, and its
    /// extent.
    fn along(self, a: usize, b: usize) -> (usize, usize) {
        match self {
            Part::Full => (0, a + b - 1),
            Part::Same => (b / 2, a),
            Part::Valid => (b - 1, (a + 1).saturating_sub(b)),
        }
    }
}

fn conv2(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let (arrays, part) = match args {
        [arrays @ .., word] if arrays.len() > 1 && word.is_char() => (arrays, Part::of(word)?),
        [_, _, _, _] => return fail!("conv2: SHAPE type not valid"),
        _ => (args, Part::Full),
    };
    if let Some(odd) = arrays.iter().find(|value| value.dims().len() > 2) {
        return fail!("conv2: A and B must be 1-D vectors or 2-D matrices, not {}", odd.dims());
    }
    Ok(match arrays {
        [a, b] => convolution(env, a, b, part)?.into(),
        [column, row, a] => {
            if ![column, row].iter().all(|value| value.dims().is_vector() || value.len() == 1) {
                return fail!("conv2: arguments must be vectors for separable option");
            }
            let by_columns = convolution(env, a, &seen_as(env, column, |n| [n, 1])?, part)?;
            convolution(env, &by_columns, &seen_as(env, row, |n| [1, n])?, part)?.into()
        }
        _ => return fail!("conv2: SHAPE type not valid"),
    })
}

/// Returns a vector as a row or a column.
fn seen_as(env: &Env, vector: &Value, dims: fn(usize) -> [usize; 2]) -> Flow<Value> {
    let host = env.host(vector)?;
    Ok(Value::tensor(Tensor::new(Dims::new(&dims(host.len())), (*host.data).clone())))
}

fn convolution(env: &Env, a: &Value, b: &Value, part: Part) -> Flow<Value> {
    let single = [a, b].iter().any(|value| value.class() == Class::Single);
    let class = if single { Class::Single } else { Class::Double };
    if a.is_empty() || b.is_empty() {
        return Ok(Value::tensor(Tensor::zeros(class, Dims::new(&[0, 0]))));
    }
    let (da, db) = (a.dims(), b.dims());
    let extents = [part.along(da.rows(), db.rows()).1, part.along(da.columns(), db.columns()).1];
    env.check_host(&extents, 2 * size_of::<f64>())?;
    if let Some(recorded) = recorded(env, a, b, class, part)? {
        return Ok(recorded);
    }
    env.host_all([a, b])?;
    if !a.is_complex() && !b.is_complex() {
        let (a, b) = (real(env, "conv2", a)?, real(env, "conv2", b)?);
        return Ok(value_of(&convolved(&a.matrix, &b.matrix, part), single));
    }
    let parts = |value: &Value| -> Flow<[Mat<f64>; 2]> {
        let host = env.host(value)?;
        let (rows, columns) = (host.dims.rows(), host.dims.columns());
        let at = |i, j| host.data.c64_at(j * rows + i);
        Ok([Mat::from_fn(rows, columns, |i, j| at(i, j).re), Mat::from_fn(rows, columns, |i, j| at(i, j).im)])
    };
    let (a, b) = (parts(a)?, parts(b)?);
    let product = |i: usize, j: usize| convolved(&a[i], &b[j], part);
    let (re, im) = (product(0, 0) - product(1, 1), product(0, 1) + product(1, 0));
    let out = Mat::from_fn(re.nrows(), re.ncols(), |i, j| Complex64::new(re[(i, j)], im[(i, j)]));
    Ok(complex_value(&out, class))
}

/// Records the convolution of a large matrix with a small one on the runtime: a sum of as many shifted matrices as the
/// small one has elements. `None` if zeros beyond the edge would meet numbers that are not finite, or if there is no
/// GPU that has the dtype, since without one a loop over columns takes a fifth of the time.
fn recorded(env: &Env, a: &Value, b: &Value, class: Class, part: Part) -> Flow<Option<Value>> {
    let (da, db) = (a.dims(), b.dims());
    let ((top, rows), (left, columns)) = (part.along(da.rows(), db.rows()), part.along(da.columns(), db.columns()));
    let Some(dtype) = class.dtype() else { return Ok(None) };
    let is_large = matches!(a, Value::Lazy(_)) || is_big(env, class, da.elements());
    let is_float = [a, b].iter().all(|value| value.class().is_float() && !value.is_complex());
    if !is_large || !is_float || db.elements() > KERNEL_MAX || rows * columns == 0 {
        return Ok(None);
    }
    // This is checked last, since it opens the GPU.
    if !env.session.devices().iter().any(|device| device.is_accelerator() && device.has(dtype)) {
        return Ok(None);
    }
    let kernel = env.host(b)?;
    let by = kernel.data.to_f64();
    let Some(array) = lift(env, a)?.filter(|_| by.iter().all(|x| x.is_finite())) else { return Ok(None) };
    let array = if array.dtype()? == dtype { array } else { array.cast_to(dtype) };
    // The zeros around the matrix are as wide as the shifts reach.
    let (above, before) = (db.rows() - 1 - top, db.columns() - 1 - left);
    let (height, width) = (rows + db.rows() - 1, columns + db.columns() - 1);
    let wide = if [height, width] == [da.rows(), da.columns()] {
        array
    } else {
        let zeros = env.session.full(0.0, [height, width]).cast_to(dtype);
        zeros.assign((above..above + da.rows(), before..before + da.columns()), &array)
    };
    let mut sum = None;
    for (k, by) in by.iter().enumerate() {
        let (p, q) = (k % db.rows(), k / db.rows());
        let (i, j) = (db.rows() - 1 - p, db.columns() - 1 - q);
        let term = wide.slice((i..i + rows, j..j + columns)) * *by;
        sum = Some(match sum {
            None => term,
            Some(sum) => sum + &term,
        });
    }
    sum.map(|sum| record(sum, class, &[a, b])).transpose()
}

/// Returns the convolution of two matrices, or a part of it.
fn convolved(a: &Mat<f64>, b: &Mat<f64>, part: Part) -> Mat<f64> {
    let ((top, rows), (left, columns)) = (part.along(a.nrows(), b.nrows()), part.along(a.ncols(), b.ncols()));
    part_of_convolution(a, b, (top, left), (rows, columns))
}

/// Returns some rows and columns of a convolution, from this place on. It works column by column, and adds a multiple
/// of one of `a`'s columns for each element of `b`, in the order of `b`'s elements.
fn part_of_convolution(
    a: &Mat<f64>,
    b: &Mat<f64>,
    (top, left): (usize, usize),
    (rows, columns): (usize, usize),
) -> Mat<f64> {
    let mut out = Mat::zeros(rows, columns);
    for column in 0..columns {
        let j = column + left;
        let sums = out.col_as_slice_mut(column);
        for q in j.saturating_sub(a.ncols() - 1)..=j.min(b.ncols() - 1) {
            let given = a.col_as_slice(j - q);
            for (p, by) in b.col_as_slice(q).iter().enumerate() {
                let (low, high) = (p.max(top), (p + given.len()).min(top + rows));
                if low < high {
                    let sums = sums[low - top..high - top].iter_mut();
                    sums.zip(&given[low - p..high - p]).for_each(|(sum, x)| *sum += x * by);
                }
            }
        }
    }
    out
}

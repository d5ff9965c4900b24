//! Elementwise operators on arrays in host memory.

use super::complex;
use super::expand::{Side, expanded, zip};
use super::operand::{
    Elements, Host, arithmetic_class, complex_in_class, in_class, in_wide_class, is_wide, nan_is_no_truth, type_name,
};
use super::{power, wide};
use crate::error::{Flow, fail};
use crate::syntax::ast::BinaryOp;
use crate::value::blocks::{BLOCK, Joined};
use crate::value::{Class, Data, Dims, Tensor, Value};
use num_complex::Complex64;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Returns the error for operands whose classes the operator does not combine.
pub(crate) fn undefined<T>(op: BinaryOp, a: &Value, b: &Value) -> Flow<T> {
    fail!(
        "binary operator '{}' not implemented for '{}' by '{}' operations",
        op.symbol(),
        type_name(a, true),
        type_name(b, true)
    )
}

/// Returns the class of an elementwise operator's result, or the error if the classes do not combine. Cells, structs
/// and handles never do.
pub(crate) fn result_class(op: BinaryOp, a: &Value, b: &Value) -> Flow<Class> {
    let (left, right) = (a.class(), b.class());
    let arrays = |class: Class| !matches!(class, Class::Cell | Class::Struct | Class::Function);
    if !arrays(left) || !arrays(right) {
        return undefined(op, a, b);
    }
    if left.is_integer() && b.is_complex() || right.is_integer() && a.is_complex() {
        return undefined(op, a, b);
    }
    let class = match op {
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => Some(Class::Logical),
        // Two different integer classes do not mix as truth values either.
        BinaryOp::And | BinaryOp::Or => arithmetic_class(left, right).map(|_| Class::Logical),
        _ => arithmetic_class(left, right),
    };
    match class {
        Some(class) => Ok(class),
        None => undefined(op, a, b),
    }
}

/// Returns the operator's name in messages about shapes.
pub(crate) fn shape_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "operator +",
        BinaryOp::Sub => "operator -",
        BinaryOp::Mul => "product",
        BinaryOp::Div | BinaryOp::LeftDiv => "quotient",
        BinaryOp::Pow => "operator .^",
        BinaryOp::MatMul => "operator *",
        BinaryOp::MatDiv => "operator /",
        BinaryOp::MatLeftDiv => "operator \\",
        BinaryOp::MatPow => "operator ^",
        BinaryOp::Eq => "mx_el_eq",
        BinaryOp::Ne => "mx_el_ne",
        BinaryOp::Lt => "mx_el_lt",
        BinaryOp::Le => "mx_el_le",
        BinaryOp::Gt => "mx_el_gt",
        BinaryOp::Ge => "mx_el_ge",
        BinaryOp::And => "mx_el_and",
        BinaryOp::Or => "mx_el_or",
    }
}

/// Returns the dimensions of an elementwise operator's result.
pub(crate) fn result_dims(op: BinaryOp, a: &[usize], b: &[usize]) -> Flow<Dims> {
    // `a .\ b` is `b ./ a`, in its messages, too.
    if op == BinaryOp::LeftDiv { expanded(shape_name(op), b, a) } else { expanded(shape_name(op), a, b) }
}

/// Computes an elementwise operator, whose class and dimensions were checked.
pub(crate) fn elementwise(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: Dims) -> Flow<Value> {
    let data = computed(op, a, b, class, &dims)?;
    Ok(Value::tensor(Tensor::new(dims, data)))
}

/// Returns the elements of the result. Large results that are computed with wider numbers are computed in blocks.
fn computed(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Flow<Data> {
    if dims.elements() > BLOCK && widens(op, a, b, class) {
        return in_blocks(op, a, b, class, dims);
    }
    at_once(op, a, b, class, dims)
}

/// Whether arrays are computed with numbers that are wider than their own.
fn widens(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class) -> bool {
    // Whether a power of floats is complex depends on all of its elements.
    if op == BinaryOp::Pow && !class.is_integer() {
        return false;
    }
    let is_plain = |host: &Host<'_>| host.len() == 1 || matches!(host.elements(), Elements::Data(Data::F64(_)));
    let is_plain_complex = |host: &Host<'_>| host.len() == 1 || matches!(host.elements(), Elements::Data(Data::C64(_)));
    let is_truth = |host: &Host<'_>| host.len() == 1 || matches!(host.elements(), Elements::Data(Data::Bool(_)));
    match op {
        BinaryOp::And | BinaryOp::Or => !(is_truth(a) && is_truth(b)),
        _ if matches!(class, Class::Double | Class::Logical) => {
            !(is_plain(a) && is_plain(b)) && !(is_plain_complex(a) && is_plain_complex(b))
        }
        _ => true,
    }
}

/// Returns the elements of the result, computed a block at a time.
fn in_blocks(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Flow<Data> {
    let n = dims.elements();
    let spans = |host: &Host<'_>| host.len() == 1 || *host.dims() == **dims;
    if !(spans(a) && spans(b)) {
        return in_slices(op, a, b, class, dims);
    }
    let mut out = Joined::of(n);
    for start in (0..n).step_by(BLOCK) {
        let (end, rows) = (n.min(start + BLOCK), Dims::new(&[BLOCK.min(n - start), 1]));
        let (x, y) = (block(a, start..end, &rows), block(b, start..end, &rows));
        out.add(at_once(op, x.as_ref().unwrap_or(a), y.as_ref().unwrap_or(b), class, &rows)?);
    }
    Ok(out.data.unwrap_or_else(|| Data::zeros(class, 0)))
}

/// Returns the elements of the result for operands that expand against each other, computed for a part of the outermost
/// extent at a time.
fn in_slices(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Flow<Data> {
    let n = dims.elements();
    let Some(outer) = dims.iter().rposition(|&extent| extent > 1) else { return at_once(op, a, b, class, dims) };
    let with_outer = |inner: &[usize], count: usize| Dims::new(&[inner, &[count]].concat());
    let part = |host: &Host<'_>, from: usize, count: usize| {
        if host.dims().get(outer).is_none_or(|&own| own == 1) {
            return None;
        }
        let inner = &host.dims()[..outer];
        let stride: usize = inner.iter().product();
        block(host, from * stride..(from + count) * stride, &with_outer(inner, count))
    };
    let step = (BLOCK / (n / dims[outer]).max(1)).max(1);
    let mut out = Joined::of(n);
    for from in (0..dims[outer]).step_by(step) {
        let count = step.min(dims[outer] - from);
        let (x, y) = (part(a, from, count), part(b, from, count));
        let all = with_outer(&dims[..outer], count);
        out.add(computed(op, x.as_ref().unwrap_or(a), y.as_ref().unwrap_or(b), class, &all)?);
    }
    Ok(out.data.unwrap_or_else(|| Data::zeros(class, 0)))
}

/// Returns a part of an operand's elements as an operand of these dimensions; `None` for a scalar, which is used
/// unchanged.
fn block(host: &Host<'_>, range: Range<usize>, dims: &Dims) -> Option<Host<'static>> {
    match host.elements() {
        Elements::Data(data) if data.len() > 1 => {
            Some(Host::Awaited(Arc::new(Tensor::new(dims.clone(), data.part(range)))))
        }
        _ => None,
    }
}

fn at_once(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Flow<Data> {
    Ok(match op {
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            Data::Bool(compared(op, a, b, dims))
        }
        BinaryOp::And | BinaryOp::Or => Data::Bool(logical(op, a, b, dims)?),
        BinaryOp::Pow => power::elementwise(a, b, class, dims),
        _ if is_wide(class) => wide_arithmetic(op, a, b, class, dims),
        _ if a.is_complex() || b.is_complex() => complex_arithmetic(op, a, b, class, dims),
        _ => in_class(class, arithmetic(op, a, b, class, dims)),
    })
}

fn arithmetic(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Vec<f64> {
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    match op {
        BinaryOp::Sub => zip(x, y, dims, |x, y| x - y),
        BinaryOp::Mul => zip(x, y, dims, |x, y| x * y),
        BinaryOp::Div => zip(x, y, dims, |x, y| x / y),
        BinaryOp::LeftDiv => zip(x, y, dims, |x, y| y / x),
        _ => zip(x, y, dims, |x, y| x + y),
    }
}

/// Computes arithmetic on complex numbers. As in C, a real operand acts on each part alone for some operators.
fn complex_arithmetic(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Data {
    let (real_a, real_b) = (!a.is_complex(), !b.is_complex());
    let (x, y) = (a.elements().complexes_in(class), b.elements().complexes_in(class));
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    let times = |p: Complex64, q: Complex64, p_real: bool, q_real: bool| match (p_real, q_real) {
        (true, _) => complex::c(p.re * q.re, p.re * q.im),
        (_, true) => complex::c(p.re * q.re, p.im * q.re),
        _ => complex::mul(p, q),
    };
    let over = |p: Complex64, q: Complex64, q_real: bool| {
        if q_real { complex::c(p.re / q.re, p.im / q.re) } else { complex::div(p, q) }
    };
    let out = match op {
        BinaryOp::Sub if real_a => zip(x, y, dims, |x, y| complex::c(x.re - y.re, -y.im)),
        BinaryOp::Sub if real_b => zip(x, y, dims, |x, y| complex::c(x.re - y.re, x.im)),
        BinaryOp::Sub => zip(x, y, dims, |x, y| x - y),
        BinaryOp::Mul => zip(x, y, dims, |x, y| times(x, y, real_a, real_b)),
        BinaryOp::Div => zip(x, y, dims, |x, y| over(x, y, real_b)),
        BinaryOp::LeftDiv => zip(x, y, dims, |x, y| over(y, x, real_a)),
        _ if real_a => zip(x, y, dims, |x, y| complex::c(x.re + y.re, y.im)),
        _ if real_b => zip(x, y, dims, |x, y| complex::c(x.re + y.re, x.im)),
        _ => zip(x, y, dims, |x, y| x + y),
    };
    complex_in_class(class, out)
}

fn wide_arithmetic(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Data {
    let whole = |h: &Host<'_>| !h.class().is_float();
    let out = match (whole(a), whole(b)) {
        (true, true) => {
            let (x, y) = (a.elements().integers(), b.elements().integers());
            let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
            zip(x, y, dims, |x, y| wide::integers(op, x, y))
        }
        (true, false) => {
            let (x, y) = (a.elements().integers(), b.elements().reals());
            let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
            zip(x, y, dims, |x, y| wide::with_float(op, x, y, false))
        }
        _ => {
            let (x, y) = (a.elements().reals(), b.elements().integers());
            let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
            zip(x, y, dims, |x, y| wide::with_float(op, y, x, true))
        }
    };
    in_wide_class(class, out.into_iter())
}

/// Whether a relation holds for operands in this order; `None` means that one of them is NaN.
fn holds(op: BinaryOp, order: Option<Ordering>) -> bool {
    match op {
        BinaryOp::Eq => order == Some(Ordering::Equal),
        BinaryOp::Ne => order != Some(Ordering::Equal),
        BinaryOp::Lt => order == Some(Ordering::Less),
        BinaryOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        BinaryOp::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn compared(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, dims: &Dims) -> Vec<bool> {
    if is_wide(a.class()) || is_wide(b.class()) {
        return wide_compared(op, a, b, dims);
    }
    let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
    // Beside a single, a double is rounded. Beside an integer, both are exact as doubles.
    let single = arithmetic_class(a.class(), b.class()) == Some(Class::Single);
    let class = if single { Class::Single } else { Class::Double };
    if equality && (a.is_complex() || b.is_complex()) {
        let (x, y) = (a.elements().complexes_in(class), b.elements().complexes_in(class));
        let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
        return zip(x, y, dims, |x, y| (x == y) == (op == BinaryOp::Eq));
    }
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    match op {
        BinaryOp::Eq => zip(x, y, dims, |x, y| x == y),
        BinaryOp::Ne => zip(x, y, dims, |x, y| x != y),
        BinaryOp::Lt => zip(x, y, dims, |x, y| x < y),
        BinaryOp::Le => zip(x, y, dims, |x, y| x <= y),
        BinaryOp::Gt => zip(x, y, dims, |x, y| x > y),
        _ => zip(x, y, dims, |x, y| x >= y),
    }
}

fn wide_compared(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, dims: &Dims) -> Vec<bool> {
    let whole = |h: &Host<'_>| !h.class().is_float();
    if whole(a) && whole(b) {
        let (x, y) = (a.elements().integers(), b.elements().integers());
        let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
        return zip(x, y, dims, |x, y| holds(op, Some(x.cmp(&y))));
    }
    if whole(a) {
        let (x, y) = (a.elements().integers(), b.elements().reals());
        let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
        return zip(x, y, dims, |x, y| holds(op, wide::compare(x, y)));
    }
    let (x, y) = (a.elements().reals(), b.elements().integers());
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    zip(x, y, dims, |x, y| holds(op, wide::compare(y, x).map(Ordering::reverse)))
}

fn logical(op: BinaryOp, a: &Host<'_>, b: &Host<'_>, dims: &Dims) -> Flow<Vec<bool>> {
    let (x, y) = (a.elements().truths(), b.elements().truths());
    let (Some(x), Some(y)) = (x, y) else { return Err(nan_is_no_truth()) };
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    Ok(if op == BinaryOp::And { zip(x, y, dims, |x, y| x & y) } else { zip(x, y, dims, |x, y| x | y) })
}

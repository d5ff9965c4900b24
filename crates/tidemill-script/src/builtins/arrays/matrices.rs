//! Special matrices, grids, diagonals and triangles.
//!
//! In: vectors and sizes. Out: matrices on the host. If the runtime has an op for a function, it is recorded there for
//! arrays on the runtime.

use super::creation::{check_host, set};
use super::shape::{host_value, reshaped};
use crate::builtins::args::{self, extent, number};
use crate::builtins::record::{check_shape, is_big, lift, record};
use crate::builtins::reduce::field::widened;
use crate::builtins::reduce::lanes::{Axis, pick, pick_along};
use crate::builtins::reduce::reductions::{check_array, hosted, on_runtime};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::index::Values;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use tidemill::Array;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("diag", 1, 3, 1, "diag (v, k)", "A matrix with a diagonal, or a matrix's diagonal.", diag),
    row("tril", 1, 3, 1, "tril (a, k)", "The lower triangle of a matrix.", |i, a, _| triangle(i, "tril", a)),
    row("triu", 1, 3, 1, "triu (a, k)", "The upper triangle of a matrix.", |i, a, _| triangle(i, "triu", a)),
    row("blkdiag", 1, ANY, 1, "blkdiag (a, b, ...)", "A matrix with these blocks on its diagonal.", blkdiag),
    row("meshgrid", 1, 3, 3, "[xx, yy, zz] = meshgrid (x, y, z)", "Coordinates of a grid, x along columns.", meshgrid),
    row("ndgrid", 1, ANY, ANY, "[y1, y2, ...] = ndgrid (x1, x2, ...)", "Coordinates of a grid.", ndgrid),
    row("magic", 1, 1, 1, "magic (n)", "A magic square.", magic),
    row("hilb", 1, 1, 1, "hilb (n)", "The Hilbert matrix.", hilb),
    row("invhilb", 1, 1, 1, "invhilb (n)", "The inverse of the Hilbert matrix.", invhilb),
    row("vander", 1, 2, 1, "vander (c, n)", "The Vandermonde matrix.", vander),
    row("toeplitz", 1, 2, 1, "toeplitz (c, r)", "The Toeplitz matrix of a column and a row.", toeplitz),
    row("hankel", 1, 2, 1, "hankel (c, r)", "The Hankel matrix of a column and a last row.", hankel),
    row(
        "pascal",
        1,
        2,
        1,
        "pascal (n, t)",
        "The Pascal matrix (0), its lower triangular factor (-1), that with signs (1), or a cube root of the identity (2).",
        pascal,
    ),
    row("wilkinson", 1, 1, 1, "wilkinson (n)", "The Wilkinson matrix.", wilkinson),
];

/// Reads a diagonal's number: an integer, far from overflow.
fn diagonal(env: &Env, name: &str, k: Option<&Value>) -> Flow<i64> {
    let Some(k) = k else { return Ok(0) };
    if k.len() != 1 || !(k.is_numeric() || k.class() == Class::Logical) {
        return fail!("{name}: invalid argument K: must be a scalar value");
    }
    Ok(args::integer(number(env, name, k)?.trunc())?.clamp(-(1 << 40), 1 << 40))
}

fn diag(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(&args[1..])?;
    let x = &args[0];
    let dims = x.dims();
    if dims.len() > 2 {
        return fail!("Matrix must be 2-dimensional");
    }
    let vector = dims.is_vector();
    if let [_, m, n] = args {
        if !vector {
            return fail!("diag: V must be a vector");
        }
        let (m, n) = (number(env, "diag", m)?, number(env, "diag", n)?);
        if m < 0.0 || n < 0.0 {
            return fail!("Invalid resizing operation or ambiguous assignment to an out-of-bounds array element");
        }
        let (m, n) = (extent(m)?, extent(n)?);
        let host = host_value(env, x)?;
        let count = host.len().min(m).min(n);
        return spread(env, &host, count, Dims::new(&[m, n]), 0);
    }
    let k = diagonal(env, "diag", args.get(1))?;
    if on_runtime(x).is_some()
        && let Some(array) = lift(env, x)?
    {
        if vector {
            let n = x.len() + k.unsigned_abs() as usize;
            check_shape(env, &Dims::new(&[n, n]))?;
        }
        return Ok(record(array.diag(k), x.class(), &[x])?.into());
    }
    let host = host_value(env, x)?;
    if dims[..] == [0, 0] {
        return Ok(host.into());
    }
    if vector {
        let n = host.len().saturating_add(k.unsigned_abs() as usize);
        if n == 0 {
            return Ok(reshaped(&host, Dims::zero())?.into());
        }
        let count = host.len();
        return spread(env, &host, count, Dims::new(&[n, n]), k);
    }
    // This gives a matrix's diagonal, as a column.
    let (rows, columns) = (dims.rows() as i64, dims.columns() as i64);
    let (first_row, first_column) = ((-k).max(0), k.max(0));
    let count = (rows - first_row).min(columns - first_column).max(0);
    let places: Vec<usize> = (0..count).map(|i| (first_row + i + (first_column + i) * rows) as usize).collect();
    match pick(&host, Dims::new(&[places.len(), 1]), &places) {
        Some(Value::Tensor(tensor)) => Ok(Value::tensor(std::sync::Arc::unwrap_or_clone(tensor)).into()),
        Some(value) => Ok(value.into()),
        None => fail!("diag: requires vector of proper dimension"),
    }
}

/// Makes a matrix with the first `count` elements of a vector on diagonal `k`.
fn spread(env: &Env, x: &Value, count: usize, dims: Dims, k: i64) -> Flow<Outcome> {
    check_host(env, &dims, x.class())?;
    let rows = dims.rows();
    let place = |i: usize| (i + (-k).max(0) as usize) + (i + k.max(0) as usize) * rows;
    if let Value::Cell(c) = x {
        let mut items = vec![Value::empty(); dims.elements()];
        (0..count).for_each(|i| items[place(i)] = c.items[i].clone());
        return Ok(Value::cell(dims, items).into());
    }
    check_array("diag", x)?;
    let host = env.host(x)?;
    let mut data = zeros_like(&host.data, dims.elements());
    (0..count).for_each(|i| set(&mut data, place(i), &host.data, i));
    let tensor = Tensor::new(dims, data);
    Ok(Value::tensor(if k == 0 { tensor.diagonal() } else { tensor }).into())
}

/// Returns zeros of the same class and complexity.
fn zeros_like(data: &Data, n: usize) -> Data {
    match data {
        Data::C64(_) => Data::C64(vec![Default::default(); n]),
        Data::C32(_) => Data::C32(vec![Default::default(); n]),
        other => Data::zeros(other.class(), n),
    }
}

fn triangle(interp: &mut Interp, name: &'static str, args: &[Value]) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    let pack = args.iter().skip(1).any(|a| args::is_word(a, "pack"));
    let k = diagonal(env, name, args.get(1).filter(|a| !a.is_char()))?;
    let dims = x.dims();
    if dims.len() > 2 {
        return fail!("{name}: need a 2-D matrix");
    }
    let upper = name == "triu";
    if !pack && let Some(l) = on_runtime(x) {
        let array = if upper { l.array.triu(k) } else { l.array.tril(k) };
        return Ok(record(array, l.class, &[x])?.into());
    }
    let rows = dims.rows().max(1);
    let keep = |i: usize| {
        let above = (i / rows) as i64 - (i % rows) as i64;
        if upper { above >= k } else { above <= k }
    };
    let x = host_value(env, x)?;
    if pack {
        let places: Vec<usize> = (0..x.len()).filter(|&i| keep(i)).collect();
        return match pick(&x, Dims::new(&[places.len(), 1]), &places) {
            Some(value) => Ok(value.into()),
            None => fail!("{name}: need a 2-D matrix"),
        };
    }
    if let Value::Cell(c) = &x {
        let items = c.items.iter().enumerate().map(|(i, v)| if keep(i) { v.clone() } else { Value::empty() });
        return Ok(Value::cell(dims, items.collect()).into());
    }
    check_array(name, &x)?;
    let host = env.host(&x)?;
    let mut data = zeros_like(&host.data, host.len());
    (0..host.len()).filter(|&i| keep(i)).for_each(|i| set(&mut data, i, &host.data, i));
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

fn blkdiag(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    if args.iter().any(|v| !(v.is_numeric() || v.class() == Class::Logical)) {
        return fail!("blkdiag: all arguments must be numeric");
    }
    if args.iter().any(|v| v.dims().len() > 2) {
        return fail!("blkdiag: all arguments must be two-dimensional matrices");
    }
    let blocks = args.iter().map(|v| env.host(v)).collect::<Flow<Vec<_>>>()?;
    let rows: usize = blocks.iter().map(|b| b.dims.rows()).sum();
    let columns: usize = blocks.iter().map(|b| b.dims.columns()).sum();
    let dims = Dims::new(&[rows, columns]);
    check_host(env, &dims, Class::Double)?;
    let complex = blocks.iter().any(|b| b.data.is_complex());
    let fit = |data: &Data| if complex { widened(&data.complexified()) } else { data.converted(Class::Double) };
    let mut out = zeros_like(&fit(&Data::F64(Vec::new())), dims.elements());
    let (mut row, mut column) = (0, 0);
    for block in blocks {
        let data = fit(&block.data);
        for i in 0..data.len() {
            let (r, c) = (i % block.dims.rows(), i / block.dims.rows());
            set(&mut out, row + r + (column + c) * rows, &data, i);
        }
        row += block.dims.rows();
        column += block.dims.columns();
    }
    Ok(Value::tensor(Tensor::new(dims, out)).into())
}

/// Spreads the vector over a grid of these extents, along dimension `d`.
fn along(env: &Env, x: &Value, d: usize, grid: &[usize]) -> Flow<Value> {
    let dims = Dims::new(grid);
    env.check_elements(&dims)?;
    let on_device = on_runtime(x).is_some() || is_big(env, x.class(), dims.elements());
    if on_device && let Some(array) = lift(env, x)? {
        check_shape(env, &dims)?;
        let mut shape = vec![1; grid.len()];
        shape[d] = x.len();
        let spread: Array = array.reshape(shape).broadcast_to(grid);
        return record(spread, x.class(), &[x]);
    }
    check_host(env, &dims, x.class())?;
    let column = reshaped(&host_value(env, x)?, Dims::new(&[1, 1]).with(d, x.len()))?;
    let at = |i: usize, k: usize| if i == d { k } else { 0 };
    match pick_along(&column, dims, &Axis::mapped(&column.dims(), grid, &at)) {
        Some(value) => Ok(value),
        None => fail!("wrong type argument '{}'", x.class_name()),
    }
}

fn meshgrid(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let vector = |v: &Value| v.dims().is_vector();
    let three = args.len() == 3 || args.len() == 1 && nargout == 3;
    let x = &args[0];
    let y = args.get(1).unwrap_or(x);
    let z = args.get(2).or(if three { Some(x) } else { None });
    if !vector(x) || !vector(y) {
        return fail!("meshgrid: X and Y must be vectors");
    }
    if z.is_some_and(|z| !vector(z)) {
        return fail!("meshgrid: X, Y, and Z must be vectors");
    }
    if nargout > 2 && !three {
        return fail!("Invalid call to meshgrid");
    }
    let mut grid = vec![y.len(), x.len()];
    grid.extend(z.map(Value::len));
    let mut outs = vec![along(env, x, 1, &grid)?, along(env, y, 0, &grid)?];
    if let Some(z) = z {
        outs.push(along(env, z, 2, &grid)?);
    }
    Ok(outs.into())
}

fn ndgrid(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let count = if args.len() == 1 { nargout.max(1) } else { args.len() };
    if nargout > count {
        return fail!("ndgrid: wrong number of input arguments");
    }
    if args.iter().any(|v| !v.dims().is_vector() && !v.is_empty()) {
        return fail!("ndgrid: arguments must be vectors");
    }
    let axis = |k: usize| args.get(k).unwrap_or(&args[0]);
    let grid: Vec<usize> = match (args.len(), count) {
        // A single vector is a column.
        (1, 1) => vec![args[0].len(), 1],
        _ => (0..count).map(|k| axis(k).len()).collect(),
    };
    let outs = (0..nargout.max(1)).map(|k| along(env, axis(k), k, &grid)).collect::<Flow<Values>>()?;
    Ok(outs.into())
}

/// Reads the size of a special matrix.
fn order(interp: &Interp, name: &str, n: &Value) -> Flow<usize> {
    if n.len() != 1 || !(n.is_numeric() || n.class() == Class::Logical) {
        return fail!("{name}: N must be a scalar integer");
    }
    let n = extent(number(&interp.env, name, n)?.floor())?;
    check_host(&interp.env, &Dims::new(&[n, n]), Class::Double)?;
    Ok(n)
}

fn square(n: usize, at: impl Fn(usize, usize) -> f64) -> Outcome {
    let data = (0..n).flat_map(|c| (0..n).map(move |r| (r, c))).map(|(r, c)| at(r, c)).collect();
    Value::tensor(Tensor::new(Dims::new(&[n, n]), Data::F64(data))).into()
}

fn magic(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args[0].len() == 1 && crate::builtins::args::number(&interp.env, "magic", &args[0])? < 0.0 {
        return fail!("magic: N must be non-negative");
    }
    let n = order(interp, "magic", &args[0])?;
    // The Siamese method: the row and column of each place give two digits to the base n.
    fn odd(n: usize, r: usize, c: usize) -> usize {
        let tens = (r + c + 2 + 2 * n - n.div_ceil(2) - 1) % n;
        let ones = (r + 2 * c + 1 + n) % n;
        tens * n + ones + 1
    }
    let at = |r: usize, c: usize| -> usize {
        if n % 2 == 1 {
            odd(n, r, c)
        } else if n % 4 == 0 {
            let count = r * n + c + 1;
            let mirrored = (r + 1) % 4 / 2 == (c + 1) % 4 / 2;
            if mirrored { n * n + 1 - count } else { count }
        } else {
            // The square consists of four odd squares, and some of their rows are exchanged.
            let p = n / 2;
            let k = (n - 2) / 4;
            let left = if r % p == k { (1..=k).contains(&c) } else { c < k };
            let swapped = left || c + k > n;
            let row = if swapped { (r + p) % n } else { r };
            let offset = match (row < p, c < p) {
                (true, true) => 0,
                (false, false) => 1,
                (true, false) => 2,
                (false, true) => 3,
            };
            odd(p, row % p, c % p) + offset * p * p
        }
    };
    if n == 2 {
        return Ok(square(2, |r, c| [[4.0, 3.0], [1.0, 2.0]][r][c]));
    }
    Ok(square(n, |r, c| at(r, c) as f64))
}

fn hilb(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = order(interp, "hilb", &args[0])?;
    Ok(square(n, |r, c| 1.0 / (r + c + 1) as f64))
}

/// Returns the binomial coefficient `n` over `k`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |b, i| (b * (n - i) as f64 / (i + 1) as f64).round())
}

fn invhilb(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = order(interp, "invhilb", &args[0])?;
    Ok(square(n, |r, c| {
        let (i, j) = (r + 1, c + 1);
        let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
        let middle = choose(i + j - 2, i - 1);
        sign * (i + j - 1) as f64 * choose(n + i - 1, n - j) * choose(n + j - 1, n - i) * middle * middle
    }))
}

fn signed_pascal(r: usize, c: usize) -> f64 {
    match c {
        _ if c > r => 0.0,
        _ if c % 2 == 1 => -choose(r, c),
        _ => choose(r, c),
    }
}

fn pascal(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = order(interp, "pascal", &args[0])?;
    match args.get(1).map_or(Ok(0.0), |t| number(&interp.env, "pascal", t))? {
        0.0 => {}
        -1.0 => return Ok(square(n, |r, c| if c <= r { choose(r, c) } else { 0.0 })),
        1.0 => return Ok(square(n, signed_pascal)),
        // This is the factor, rotated by a quarter turn.
        2.0 => {
            let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
            return Ok(square(n, |r, c| sign * signed_pascal(n - 1 - c, r)));
        }
        t => return fail!("pascal: T must be -1, 0, 1, or 2, found {t}"),
    }
    // Each element is the sum of the one above it and the one on its left.
    let mut data = vec![1.0; n * n];
    for c in 1..n {
        for r in 1..n {
            data[c * n + r] = data[c * n + r - 1] + data[(c - 1) * n + r];
        }
    }
    Ok(Value::tensor(Tensor::new(Dims::new(&[n, n]), Data::F64(data))).into())
}

fn wilkinson(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let size =
        if args[0].len() == 1 { crate::builtins::args::number(&interp.env, "wilkinson", &args[0])? } else { -1.0 };
    if size < 0.0 || size != size.trunc() {
        return fail!("wilkinson: N must be a non-negative integer");
    }
    let n = order(interp, "wilkinson", &args[0])?;
    Ok(square(n, |r, c| match r.abs_diff(c) {
        0 => (r as f64 - (n as f64 - 1.0) / 2.0).abs(),
        1 => 1.0,
        _ => 0.0,
    }))
}

/// Reads a vector argument of a special matrix.
fn vector(env: &Env, message: &str, x: &Value) -> Flow<std::sync::Arc<Tensor>> {
    if !(x.is_numeric() || x.class() == Class::Logical || x.is_char()) || !(x.dims().is_vector() || x.is_empty()) {
        return fail!("{message}");
    }
    hosted(env, x)
}

/// Makes a matrix whose elements come from a list of vectors, which are all converted to one class and complexity.
fn from_vectors(
    env: &Env,
    rows: usize,
    columns: usize,
    parts: [&Tensor; 2],
    at: impl Fn(usize, usize) -> Option<(usize, usize, bool)>,
) -> Flow<Outcome> {
    let dims = Dims::new(&[rows, columns]);
    check_host(env, &dims, Class::Double)?;
    let complex = parts.iter().any(|p| p.data.is_complex());
    let of = |class: Class| parts.iter().any(|p| p.data.class() == class);
    let whole = parts.iter().map(|p| p.data.class()).find(|c| c.is_integer());
    let class = match whole {
        _ if of(Class::Char) => Class::Char,
        Some(class) => class,
        None if of(Class::Single) => Class::Single,
        None if of(Class::Double) => Class::Double,
        None => Class::Logical,
    };
    let fit = |data: &Data| {
        let data = data.converted(class);
        if complex { data.complexified() } else { data }
    };
    let data = [fit(&parts[0].data), fit(&parts[1].data)];
    let mut out = zeros_like(&data[0], dims.elements());
    for c in 0..columns {
        for r in 0..rows {
            if let Some((part, i, conjugate)) = at(r, c) {
                set(&mut out, r + c * rows, &data[part], i);
                match &mut out {
                    Data::C64(v) if conjugate => v[r + c * rows] = v[r + c * rows].conj(),
                    Data::C32(v) if conjugate => v[r + c * rows] = v[r + c * rows].conj(),
                    _ => {}
                }
            }
        }
    }
    Ok(Value::tensor(Tensor::new(dims, out)).into())
}

fn toeplitz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let two = args.len() == 2;
    let c = vector(&interp.env, "toeplitz: C must be a vector", &args[0])?;
    let r = match two {
        true => vector(&interp.env, "toeplitz: C and R must be vectors", &args[1])?,
        false => c.clone(),
    };
    if two && !c.is_empty() && !r.is_empty() && c.data.c64_at(0) != r.data.c64_at(0) {
        interp.env.warn("", "toeplitz: column wins diagonal conflict");
    }
    // For one complex vector the matrix is Hermitian: elements below the diagonal are conjugated.
    from_vectors(&interp.env, c.len(), r.len(), [&c, &r], |row, column| {
        Some(if row >= column { (0, row - column, !two && row > column) } else { (1, column - row, false) })
    })
}

fn hankel(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let c = vector(&interp.env, "hankel: C must be a vector", &args[0])?;
    let n = c.len();
    match args.get(1) {
        None => from_vectors(&interp.env, n, n, [&c, &c], |row, column| {
            (row + column < n).then_some((0, row + column, false))
        }),
        Some(r) => {
            let r = vector(&interp.env, "hankel: C and R must be vectors", r)?;
            if n > 0 && !r.is_empty() && c.data.c64_at(n - 1) != r.data.c64_at(0) {
                interp.env.warn("", "hankel: column wins anti-diagonal conflict");
            }
            from_vectors(&interp.env, n, r.len(), [&c, &r], |row, column| {
                let k = row + column;
                Some(if k < n { (0, k, false) } else { (1, k + 1 - n, false) })
            })
        }
    }
}

fn vander(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let c = vector(env, "vander: polynomial C must be a vector", &args[0])?;
    let n = match args.get(1) {
        Some(n) if n.len() == 1 => extent(number(env, "vander", n)?)?,
        Some(_) => return fail!("vander: N must be a positive scalar integer"),
        None => c.len(),
    };
    let dims = Dims::new(&[c.len(), n]);
    check_host(env, &dims, Class::Double)?;
    let data = match c.data.is_complex() {
        true => Data::C64(
            (0..n)
                .rev()
                .flat_map(|k| (0..c.len()).map(move |i| (i, k)))
                .map(|(i, k)| c.data.c64_at(i).powu(k as u32))
                .collect(),
        ),
        false => Data::F64(
            (0..n)
                .rev()
                .flat_map(|k| (0..c.len()).map(move |i| (i, k)))
                .map(|(i, k)| libm::pow(c.data.f64_at(i), k as f64))
                .collect(),
        ),
    };
    let data = if c.data.class() == Class::Char { data } else { data.converted(c.data.class()) };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

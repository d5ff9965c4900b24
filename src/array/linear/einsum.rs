//! Sums of products in Einstein's notation. Operands are contracted from left to right. Each step is one matrix product
//! of permuted and reshaped operands, or an expanded product if nothing is summed.

use crate::array::handle::Array;
use crate::array::record::derive;
use crate::array::recorder::Recorder;
use crate::array::structure::whole;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Nan, ReduceOp, Shape};
use smallvec::SmallVec;
use std::panic::Location;

/// Labels of dimensions, in their order.
type Labels = SmallVec<[char; 8]>;

/// An operand, or the result of a step.
struct Term {
    array: Array,
    labels: Labels,
}

/// The sum of products that `formula` describes: `"ij,jk->ik"` is a matrix product, `"ii->"` a trace, `"i,j->ij"` an
/// outer product. Each letter names a dimension. Dimensions with the same letter must have the same extent. Letters
/// that the result does not have are summed over. Without an arrow, the result has the letters that occur once, in
/// alphabetical order. Operands are contracted two at a time, from left to right, as matrix products
/// ([`Array::matmul`]); the program chooses the order by the order of its operands.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
/// # let s = rt.session("einsum").open();
/// let a = s.from_row_major(&[1.0, 2.0, 3.0, 4.0], [2, 2]).unwrap();
/// let b = s.from_slice(&[1.0, 10.0], 2).unwrap();
/// let product = tidemill::einsum("ij,j->i", &[&a, &b]).unwrap();
/// assert_eq!(futures::executor::block_on(product.gather::<f64>()).unwrap().as_slice(), [21.0, 43.0]);
/// ```
///
/// # Errors
/// `ErrorKind::Argument` for an invalid formula, or one with another number of operands; `ErrorKind::Shape` if extents
/// or numbers of dimensions differ. The fault of an operand is carried by the resulting array.
#[track_caller]
pub fn einsum(formula: &str, operands: &[&Array]) -> Result<Array> {
    let at = Location::caller();
    let named = |error: Error| error.with_op("einsum").with_location(at);
    let (inputs, output) = parse(formula, operands.len()).map_err(named)?;
    let made = derive(operands, "einsum", at, |home, metas| {
        let r = Recorder { home, at };
        let mut terms: Vec<Term> = Vec::new();
        for ((&array, labels), meta) in operands.iter().zip(&inputs).zip(metas) {
            let rank = (0..meta.shape.axes()).filter(|&d| meta.shape.dim(d) != 1).max().map_or(0, |d| d + 1);
            if labels.len() < rank {
                let message = format!("{} has {rank} dimensions, and {} are named", meta.shape, labels.len());
                return Err(Error::new(ErrorKind::Shape, message));
            }
            terms.push(diagonals(r, Term { array: array.clone(), labels: labels.clone() })?);
        }
        contract(r, terms, &output)
    });
    match made.error() {
        Some(error) if operands.iter().all(|array| array.error().is_none()) => Err(error.clone()),
        _ => Ok(made),
    }
}

/// The labels of the operands and of the result.
fn parse(formula: &str, operands: usize) -> Result<(Vec<Labels>, Labels)> {
    let wrong = |message: String| Error::new(ErrorKind::Argument, format!("'{formula}': {message}"));
    let text: String = formula.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (text.as_str(), None),
    };
    let inputs: Vec<Labels> = left.split(',').map(|labels| labels.chars().collect()).collect();
    if inputs.len() != operands || operands == 0 {
        return Err(wrong(format!("it names {} operands, and there are {operands}", inputs.len())));
    }
    let times = |label: char| inputs.iter().flatten().filter(|&&other| other == label).count();
    let output: Labels = match right {
        Some(right) => right.chars().collect(),
        None => {
            let mut once: Labels = inputs.iter().flatten().copied().filter(|&label| times(label) == 1).collect();
            once.sort_unstable();
            once
        }
    };
    if let Some(other) = inputs.iter().flatten().chain(&output).find(|label| !label.is_ascii_alphabetic()) {
        return Err(wrong(format!("'{other}' is no letter")));
    }
    for (place, &label) in output.iter().enumerate() {
        if times(label) == 0 {
            return Err(wrong(format!("no operand has '{label}'")));
        }
        if output[..place].contains(&label) {
            return Err(wrong(format!("the result names '{label}' twice")));
        }
    }
    Ok((inputs, output))
}

/// The extent of the dimension that a label names.
fn extent(term: &Term, label: char) -> Result<usize> {
    let shape = term.array.shape()?;
    Ok(term.labels.iter().position(|&own| own == label).map_or(1, |d| shape.dim(d)))
}

/// An operand with its dimensions in the order of `groups`, each group reshaped to one dimension.
fn arranged(r: Recorder<'_>, term: &Term, groups: &[&[char]]) -> Result<Array> {
    let place = |label: &char| term.labels.iter().position(|own| own == label);
    let mut order: SmallVec<[usize; 8]> = groups.iter().copied().flatten().filter_map(place).collect();
    let rank = term.labels.len().max(term.array.shape()?.axes());
    order.extend(term.labels.len()..rank);
    let extents = groups.iter().map(|group| group.iter().map(|&label| extent(term, label)).product::<Result<usize>>());
    let extents = extents.collect::<Result<SmallVec<[usize; 8]>>>()?;
    r.reshape(&r.permute(&term.array, &order)?, Shape::new(&extents)?)
}

/// The operand's diagonals along labels that occur twice, so that no label occurs twice.
fn diagonals(r: Recorder<'_>, mut term: Term) -> Result<Term> {
    while let Some(second) = (0..term.labels.len()).find(|&d| term.labels[..d].contains(&term.labels[d])) {
        let label = term.labels[second];
        let first = term.labels.iter().position(|&own| own == label).unwrap_or(second);
        let shape = term.array.shape()?;
        let n = shape.dim(first);
        if n != shape.dim(second) {
            let message = format!("'{label}' stands for {n} and for {} elements of {shape}", shape.dim(second));
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let rest: SmallVec<[usize; 8]> = (0..term.labels.len()).filter(|&d| d != first && d != second).collect();
        let mut order: SmallVec<[usize; 8]> = SmallVec::from_slice(&[first, second]);
        order.extend(rest.iter().copied());
        order.extend(term.labels.len()..shape.axes());
        let others: usize = rest.iter().map(|&d| shape.dim(d)).product();
        let pairs = r.reshape(&r.permute(&term.array, &order)?, Shape::new(&[n * n, others])?)?;
        let mut slice = whole(pairs.shape()?);
        slice[0].step = n as isize + 1;
        slice[0].len = n;
        let chosen = r.slice(&pairs, &slice)?;
        let mut dims: SmallVec<[usize; 8]> = SmallVec::from_slice(&[n]);
        dims.extend(rest.iter().map(|&d| shape.dim(d)));
        let mut labels: Labels = SmallVec::from_slice(&[label]);
        labels.extend(rest.iter().map(|&d| term.labels[d]));
        term = Term { array: r.reshape(&chosen, Shape::new(&dims)?)?, labels };
    }
    Ok(term)
}

/// Sums over the labels that are not needed later.
fn reduced(r: Recorder<'_>, term: Term, needed: impl Fn(char) -> bool) -> Result<Term> {
    let (kept, summed): (Labels, Labels) = term.labels.iter().copied().partition(|&label| needed(label));
    if summed.is_empty() {
        return Ok(term);
    }
    let sum = r.reduce(&arranged(r, &term, &[&summed, &kept])?, ReduceOp::Sum, 1, Nan::Include)?;
    let dims = kept.iter().map(|&label| extent(&term, label)).collect::<Result<SmallVec<[usize; 8]>>>()?;
    Ok(Term { array: r.reshape(&sum, Shape::new(&dims)?)?, labels: kept })
}

/// The result of all operands, with the labels of `output`.
fn contract(r: Recorder<'_>, terms: Vec<Term>, output: &[char]) -> Result<Array> {
    let mut rest = terms.into_iter();
    let mut done = rest.next().expect("a formula names an operand");
    while let Some(next) = rest.next() {
        let later =
            |label: char| output.contains(&label) || rest.as_slice().iter().any(|term| term.labels.contains(&label));
        let shared: Labels = done.labels.iter().copied().filter(|label| next.labels.contains(label)).collect();
        let left = reduced(r, done, |label| later(label) || shared.contains(&label))?;
        let right = reduced(r, next, |label| later(label) || shared.contains(&label))?;
        done = product(r, &left, &right, &shared, later)?;
    }
    let done = reduced(r, done, |label| output.contains(&label))?;
    let order: SmallVec<[&[char]; 8]> = output.iter().map(std::slice::from_ref).collect();
    if order.is_empty() { r.reshape(&done.array, Shape::scalar()) } else { arranged(r, &done, &order) }
}

/// The product of two operands, summed over the labels that they share and that are not needed later.
fn product(r: Recorder<'_>, left: &Term, right: &Term, shared: &[char], later: impl Fn(char) -> bool) -> Result<Term> {
    for &label in shared {
        let [m, n] = [extent(left, label)?, extent(right, label)?];
        if m != n {
            return Err(Error::new(ErrorKind::Shape, format!("'{label}' stands for {m} and for {n} elements")));
        }
    }
    let (pages, terms): (Labels, Labels) = shared.iter().copied().partition(|&label| later(label));
    let own = |term: &Term| term.labels.iter().copied().filter(|label| !shared.contains(label)).collect::<Labels>();
    let (rows, columns) = (own(left), own(right));
    let a = arranged(r, left, &[&rows, &terms, &pages])?;
    let b = arranged(r, right, &[&terms, &columns, &pages])?;
    // If nothing is summed, each element is a single product, which needs no matrix product.
    let made = if terms.is_empty() { r.mul(&a, &b) } else { r.matmul(&a, &b) }?;
    let mut labels = rows.clone();
    labels.extend(columns.iter().chain(&pages).copied());
    let of = |label: char| if left.labels.contains(&label) { left } else { right };
    let dims = labels.iter().map(|&label| extent(of(label), label));
    let dims = dims.collect::<Result<SmallVec<[usize; 8]>>>()?;
    Ok(Term { array: r.reshape(&made, Shape::new(&dims)?)?, labels })
}

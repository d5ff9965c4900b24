//! Derivatives of elementwise ops: the expressions of the op table, recorded.
//!
//! In: a partial derivative of the table, the op's arguments and value, and `above`, the cotangent of the value. Out:
//! their product. Must hold: nothing is multiplied by 0 or 1. Elements that a mask does not select are 0, whatever
//! `above` is there (an infinity, NaN).

use crate::array::handle::Array;
use crate::array::operand::Operand;
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::table::{DTypeRule, Expr, Factor};
use crate::graph::{DType, ElementOp, Scalar};
use crate::kernels::element::host::apply_scalar;
use smallvec::SmallVec;

/// The result of an expression of the table.
#[derive(Clone)]
pub(super) enum Term {
    /// A number; truth values are 1 and 0.
    Number(f64),
    /// An array.
    Array(Array),
}

/// The arguments and the value of an op. Those that no rule reads are missing.
pub(super) struct Partial<'a> {
    pub recorder: Recorder<'a>,
    /// The dtype in which the op computes.
    pub dtype: DType,
    pub args: SmallVec<[Option<Term>; 3]>,
    pub value: Option<Array>,
}

impl Partial<'_> {
    /// `above` times the expression; `None` if the product is 0.
    pub fn times(&self, above: &Array, part: &Expr) -> Result<Option<Array>> {
        let r = &self.recorder;
        match part.factor() {
            Factor::Zero => Ok(None),
            Factor::One => Ok(Some(above.clone())),
            Factor::Negated(rest) => match self.times(above, rest)? {
                Some(rest) => r.apply(ElementOp::Neg, &mut [rest.into()]).map(Some),
                None => Ok(None),
            },
            Factor::Over(below) => {
                let below = self.term(below)?;
                r.div(above, self.operand(&below)).map(Some)
            }
            Factor::Quotient(factor, below) => {
                let Some(factor) = self.times(above, factor)? else { return Ok(None) };
                let below = self.term(below)?;
                r.div(&factor, self.operand(&below)).map(Some)
            }
            Factor::Chosen(mask, yes, no) => match self.term(mask)? {
                Term::Number(0.0) => self.times(above, no),
                Term::Number(_) => self.times(above, yes),
                Term::Array(mask) => {
                    let (yes, no) = (self.times(above, yes)?, self.times(above, no)?);
                    match (&yes, &no) {
                        (None, None) => Ok(None),
                        (Some(yes), None) => r.select(&mask, yes, 0.0).map(Some),
                        (None, Some(no)) => r.select(&mask, 0.0, no).map(Some),
                        (Some(yes), Some(no)) => r.select(&mask, yes, no).map(Some),
                    }
                }
            },
            Factor::Value => match self.term(part)? {
                Term::Number(0.0) => Ok(None),
                Term::Number(1.0) => Ok(Some(above.clone())),
                factor => r.mul(above, self.operand(&factor)).map(Some),
            },
        }
    }

    fn operand<'b>(&self, term: &'b Term) -> Operand<'b> {
        match term {
            Term::Number(number) => self.recorder.number(self.dtype, *number),
            Term::Array(array) => array.into(),
        }
    }

    fn term(&self, part: &Expr) -> Result<Term> {
        let (op, parts) = match part {
            Expr::Arg(n) => {
                let arg = self.args.get(usize::from(*n)).and_then(Option::as_ref);
                return Ok(arg.expect("GRAD-1: an argument that a rule reads is kept").clone());
            }
            Expr::Out => {
                let value = self.value.as_ref().expect("GRAD-1: a value that a rule reads is kept");
                return Ok(Term::Array(value.clone()));
            }
            Expr::Constant(number) => return Ok(Term::Number(*number)),
            Expr::Apply(op, parts) => (*op, *parts),
        };
        let terms = parts.iter().map(|part| self.term(part)).collect::<Result<SmallVec<[Term; 3]>>>()?;
        let numbers: SmallVec<[f64; 3]> = terms
            .iter()
            .filter_map(|term| match term {
                Term::Number(number) => Some(*number),
                Term::Array(_) => None,
            })
            .collect();
        if numbers.len() == terms.len() {
            return Ok(Term::Number(computed(op, &numbers)));
        }
        let is_logic = op.info().rule == DTypeRule::Logic;
        let mut operands: SmallVec<[Operand<'_>; 3]> = terms
            .iter()
            .map(|term| match term {
                Term::Number(number) if is_logic => (*number != 0.0).into(),
                term => self.operand(term),
            })
            .collect();
        self.recorder.apply(op, &mut operands).map(Term::Array)
    }
}

/// The result of an op on numbers alone.
fn computed(op: ElementOp, numbers: &[f64]) -> f64 {
    let truth = |number: &f64| Scalar::Bool(*number != 0.0);
    let scalars = |to: fn(&f64) -> Scalar| numbers.iter().map(to).collect::<SmallVec<[Scalar; 3]>>();
    match op.info().rule {
        DTypeRule::Logic => apply_scalar(op, DType::Bool, DType::Bool, &scalars(truth)).as_f64(),
        DTypeRule::Comparison | DTypeRule::Test => {
            apply_scalar(op, DType::F64, DType::Bool, &scalars(|n| Scalar::F64(*n))).as_f64()
        }
        DTypeRule::Arithmetic | DTypeRule::Real | DTypeRule::Select | DTypeRule::Cast => {
            apply_scalar(op, DType::F64, DType::F64, &scalars(|n| Scalar::F64(*n))).as_f64()
        }
    }
}

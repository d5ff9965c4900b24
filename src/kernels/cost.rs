//! Estimates the cost of kernels in simple operations (`graph::costs`), from the costs of their ops in the op tables.
//!
//! In: a kernel of the IR or a library kernel, with its sizes. Out: its [`Operations`], which is turned into an estimated
//! time by the rates of a device. The estimate decides when work is sent, and never changes a bit of a result.

use super::ir::{Inst, InstOp, Kernel, Level, Monoid};
use super::library::Library;
use crate::graph::costs::{Cost, INSTRUCTION, Operations, SIMPLE};
use crate::graph::{DType, ReduceOp};

impl Kernel {
    /// Simple operations over an iteration space of `outer` outputs of `inner` elements each.
    pub fn work(&self, outer: f64, inner: f64) -> Operations {
        let mut work = Operations::default();
        for inst in self.insts.iter().filter(|inst| !is_index(inst)) {
            let times = match inst.level {
                Level::Uniform => 1.0,
                Level::Outer | Level::Reduced => outer,
                Level::Element => outer * inner,
            };
            let (times, cost) = match &inst.op {
                InstOp::Apply(op, _) => (times, op.cost()),
                InstOp::Random { dist, .. } => (times, dist.cost()),
                // The level of a fold is that of its result, but its cost arises for each folded element.
                InstOp::Reduce { monoid, .. } | InstOp::Scan { monoid, .. } => (outer * inner, monoid.cost()),
                InstOp::Param(_) | InstOp::Flat | InstOp::Outer | InstOp::Inner => (times, Cost::Each(0)),
                InstOp::Load { .. } => (times, Cost::Each(SIMPLE)),
                InstOp::Index(..) | InstOp::Compare(..) => (times, Cost::Each(0)),
                InstOp::Check { .. } | InstOp::Require { .. } | InstOp::Project(..) => (times, Cost::Each(0)),
            };
            work.add(inst.dtype, times * (INSTRUCTION + cost.weight()) as f64);
        }
        work
    }
}

/// Whether an instruction is arithmetic on indices. It costs little, because the host does it once for many elements.
fn is_index(inst: &Inst) -> bool {
    match inst.op {
        InstOp::Index(..) | InstOp::Compare(..) => true,
        InstOp::Param(_) => inst.dtype == DType::U32,
        InstOp::Flat | InstOp::Outer | InstOp::Inner | InstOp::Load { .. } | InstOp::Apply(..) => false,
        InstOp::Check { .. } | InstOp::Require { .. } | InstOp::Random { .. } => false,
        InstOp::Reduce { .. } | InstOp::Project(..) | InstOp::Scan { .. } => false,
    }
}

impl Monoid {
    /// The cost of folding in one element, which is that of the reduction that the fold implements.
    fn cost(self) -> Cost {
        let reduction = match self {
            Monoid::Sum => ReduceOp::Sum,
            Monoid::Prod => ReduceOp::Prod,
            Monoid::MinInclude | Monoid::MinOmit => ReduceOp::Min,
            Monoid::MaxInclude | Monoid::MaxOmit => ReduceOp::Max,
            Monoid::ArgMinOmit | Monoid::ArgMinInclude => ReduceOp::ArgMin,
            Monoid::ArgMaxOmit | Monoid::ArgMaxInclude => ReduceOp::ArgMax,
            Monoid::Any => ReduceOp::Any,
            Monoid::All => ReduceOp::All,
            Monoid::Moments | Monoid::MomentsWhere => ReduceOp::Var { ddof: 1 },
            Monoid::Squares => ReduceOp::Norm,
            Monoid::ExpSum => ReduceOp::LogSumExp,
        };
        reduction.facts().cost
    }
}

impl Library {
    /// A rough number of simple operations.
    pub fn work(&self) -> Operations {
        let (dtype, elements, length) = match *self {
            Library::Linear { op, dtype, m, n, columns, batch, .. } => {
                let elements = op.cost_elements(m as usize, n as usize, columns as usize);
                (dtype, elements as f64 * batch as f64, m.min(n))
            }
            Library::MatMul { dtype, m, n, k, batch, .. } => (dtype, m as f64 * n as f64 * batch as f64, k),
            Library::ArgSort { dtype, before, len, after, .. } => {
                (dtype, before as f64 * after as f64 * len as f64, len)
            }
            Library::AssignIndex { dtype, before, after, count, .. } => {
                (dtype, before as f64 * after as f64 * count as f64, 1)
            }
            Library::Fourier { dtype, before, after, fourier, .. } => {
                (dtype, before as f64 * after as f64 * fourier.len as f64, fourier.len)
            }
        };
        Operations::of(dtype, self.op().facts().cost.operations(elements, length as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ElementOp;
    use crate::graph::costs::{DIVISION, EXPONENTIAL};
    use crate::kernels::ir::{Form, Val};
    use smallvec::smallvec;

    fn kernel(form: Form, insts: Vec<(InstOp, DType, Level)>) -> Kernel {
        let insts = insts.into_iter().map(|(op, dtype, level)| Inst { op, dtype, level }).collect();
        Kernel { form, operands: vec![], scratch: None, faults: false, params: 16, insts, stores: vec![], rolled: None }
    }

    #[test]
    fn a_kernel_costs_what_its_ops_do_where_they_are_computed() {
        let exp = InstOp::Apply(ElementOp::Exp, smallvec![Val(0)]);
        let root = InstOp::Apply(ElementOp::Sqrt, smallvec![Val(1)]);
        let insts = vec![(exp.clone(), DType::F32, Level::Element), (root, DType::F64, Level::Uniform)];
        let work = kernel(Form::Map, insts).work(1.0, 1000.0);
        assert_eq!(work, Operations { other: (1 + EXPONENTIAL) as f64 * 1000.0, double: (1 + DIVISION) as f64 });
        let fold = InstOp::Reduce { monoid: Monoid::Sum, args: smallvec![Val(0)] };
        let insts = vec![(fold, DType::F32, Level::Reduced), (exp, DType::F32, Level::Reduced)];
        let work = kernel(Form::Reduce { inner_fast: true }, insts).work(10.0, 100.0);
        assert_eq!(work, Operations { other: 2.0 * 1000.0 + (1 + EXPONENTIAL) as f64 * 10.0, double: 0.0 });
    }

    #[test]
    fn a_product_of_matrices_costs_its_products_and_sums() {
        let product = Library::MatMul {
            dtype: DType::F64,
            m: 3,
            n: 5,
            k: 7,
            batch: 2,
            transpose_a: false,
            transpose_b: false,
            stride_a: 21,
            stride_b: 35,
        };
        assert_eq!(product.work(), Operations { double: 420.0, other: 0.0 });
    }
}

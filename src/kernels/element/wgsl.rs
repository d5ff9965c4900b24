//! Placeholder until the op table's text lands.
#![allow(missing_docs)]
use crate::device::info::{FloatProfile, Precision};
use crate::graph::{DType, ElementOp};
use crate::kernels::wgsl::types::typed;

pub struct Functions;

impl Functions {
    pub fn new(_: FloatProfile, _: Precision, _: bool) -> Functions {
        Functions
    }
    pub fn apply(&mut self, op: ElementOp, _: DType, output: DType, width: u32, args: &[String]) -> String {
        let a = &args[0];
        match op {
            ElementOp::Add => format!("({a} + {})", args[1]),
            ElementOp::Sub => format!("({a} - {})", args[1]),
            ElementOp::Mul => format!("({a} * {})", args[1]),
            ElementOp::Div => format!("({a} / {})", args[1]),
            ElementOp::Lt => format!("({a} < {})", args[1]),
            ElementOp::Gt => format!("({a} > {})", args[1]),
            ElementOp::Min => format!("min({a}, {})", args[1]),
            ElementOp::Max => format!("max({a}, {})", args[1]),
            ElementOp::Sqrt => format!("sqrt({a})"),
            ElementOp::Select => format!("select({}, {}, {a})", args[2], args[1]),
            ElementOp::Cast => format!("{}({a})", typed(output, width)),
            _ => unimplemented!(),
        }
    }
    pub fn text(&self) -> String {
        String::new()
    }
}

//! Tests of the op table on the host: its examples, its gradients, and that blocks and scalars give the same bits.

use super::host::{HostArg, apply, apply_scalar};
use crate::graph::table::{Example, Gradient};
use crate::graph::{DType, ElementOp, Scalar};
use crate::host_buffer::HostBuffer;

/// The dtype of an op's result, given an example's dtype.
fn output_of(op: ElementOp, input: DType) -> DType {
    let arg = crate::graph::ArgType { dtype: input, weak: false, scalar: false };
    let mut args = vec![arg; op.arity()];
    if op == ElementOp::Select {
        args[0].dtype = DType::Bool;
    }
    op.signature(&args).unwrap().output
}

fn scalars(op: ElementOp, dtype: DType, args: &[f64]) -> Vec<Scalar> {
    let typed = |(n, &value): (usize, &f64)| {
        let to = if op == ElementOp::Select && n == 0 { DType::Bool } else { dtype };
        match to {
            // This is exact, because the examples' i64 are powers of two.
            DType::I64 => Scalar::I64(value as i64),
            _ => Scalar::F64(value).cast(to),
        }
    };
    args.iter().enumerate().map(typed).collect()
}

fn agrees(actual: Scalar, expected: f64, tolerance: f64) -> bool {
    let actual = actual.as_f64();
    if expected.is_nan() {
        return actual.is_nan();
    }
    if expected == 0.0 || expected.is_infinite() {
        return actual == expected && actual.is_sign_negative() == expected.is_sign_negative();
    }
    (actual - expected).abs() <= tolerance * expected.abs()
}

fn check(op: ElementOp, dtype: DType, example: &Example, expected: f64, tolerance: f64) {
    let args = scalars(op, dtype, example.args);
    let actual = apply_scalar(op, dtype, output_of(op, dtype), &args);
    assert!(agrees(actual, expected, tolerance), "{} of {args:?} in {dtype}: {actual}, not {expected}", op.name());
}

#[test]
fn every_example_of_the_table_holds() {
    for &op in ElementOp::ALL {
        for example in op.info().examples {
            check(op, example.dtype, example, example.expected, 1e-15);
            let narrow = example.args.iter().chain([&example.expected]).all(|v| {
                // An f32 holds some arguments not at all or as another number, for which the example says nothing.
                !v.is_finite() || *v == 0.0 || (*v as f32) as f64 == *v || (v.abs() < 1e3 && v.abs() > 1e-3)
            });
            if example.dtype == DType::F64 && narrow && example.args != [0.49999999999999994] {
                check(op, DType::F32, example, example.expected, 1e-6);
            }
        }
    }
}

fn in_f64(op: ElementOp, args: &[f64]) -> f64 {
    if matches!(op, ElementOp::And | ElementOp::Or | ElementOp::Xor) {
        let args: Vec<Scalar> = args.iter().map(|&v| Scalar::Bool(v != 0.0)).collect();
        return apply_scalar(op, DType::Bool, DType::Bool, &args).as_f64();
    }
    apply_scalar(op, DType::F64, output_of(op, DType::F64), &scalars(op, DType::F64, args)).as_f64()
}

#[test]
fn every_gradient_agrees_with_finite_differences() {
    for &op in ElementOp::ALL {
        let Gradient::Rule(parts) = op.info().gradient else { continue };
        let mut checked = 0;
        let points: Vec<Vec<f64>> = [[0.37, 0.61, 0.83], [1.7, 1.3, 2.9], [-0.45, 0.7, 0.2], [2.6, -1.4, -0.3]]
            .iter()
            .map(|point| point[..op.arity()].to_vec())
            .collect();
        for point in points {
            let out = in_f64(op, &point);
            if !out.is_finite() {
                continue;
            }
            for (n, part) in parts.iter().enumerate() {
                if op == ElementOp::Select && n == 0 {
                    continue;
                }
                let h = 1e-6;
                let at = |x: f64| {
                    let mut moved = point.clone();
                    moved[n] = x;
                    in_f64(op, &moved)
                };
                let difference = (at(point[n] + h) - at(point[n] - h)) / (2.0 * h);
                let derivative = part.evaluate(&point, out, &in_f64);
                if !difference.is_finite() {
                    continue;
                }
                assert!(
                    (difference - derivative).abs() <= 1e-6 * (1.0 + derivative.abs()),
                    "{} at {point:?} by argument {n}: the rule says {derivative}, differences {difference}",
                    op.name()
                );
                checked += 1;
            }
        }
        assert!(checked > 0, "no point checks the gradient of {}", op.name());
    }
}

/// Values of every kind, for a dtype.
fn values(dtype: DType, n: usize, seed: u64) -> Vec<Scalar> {
    let mut state = seed;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = state ^ (state >> 29);
            match (dtype, i % 4) {
                (DType::Bool, _) => Scalar::Bool(bits & 1 == 1),
                (DType::F32, 0) => Scalar::F32(f32::from_bits(bits as u32)),
                (DType::F64, 0) => Scalar::F64(f64::from_bits(bits)),
                (DType::F32 | DType::F64, _) => Scalar::F64((bits % 20001) as f64 / 1000.0 - 10.0).cast(dtype),
                (_, 0) => Scalar::from_bits(dtype, bits),
                _ => Scalar::F64((bits % 41) as f64 - 20.0).cast(dtype),
            }
        })
        .collect()
}

fn buffer(values: &[Scalar], dtype: DType) -> HostBuffer {
    let mut buffer = HostBuffer::zeroed(dtype, values.len());
    let bytes = buffer.bytes_mut().expect("it is owned");
    for (slot, value) in bytes.chunks_mut(dtype.bytes()).zip(values) {
        slot.copy_from_slice(&value.bits().to_le_bytes()[..dtype.bytes()]);
    }
    buffer
}

#[test]
fn blocks_and_scalars_give_the_same_bits_wherever_an_element_stands() {
    let n = 1037;
    for &op in ElementOp::ALL {
        for dtype in DType::ALL {
            let arg = crate::graph::ArgType { dtype, weak: false, scalar: false };
            let Ok(signature) = op.signature(&vec![arg; op.arity()]) else { continue };
            if signature.compute != dtype {
                continue;
            }
            let output = signature.output;
            let dtypes: Vec<DType> =
                (0..op.arity()).map(|n| if op == ElementOp::Select && n == 0 { DType::Bool } else { dtype }).collect();
            let args: Vec<Vec<Scalar>> = dtypes.iter().enumerate().map(|(k, &d)| values(d, n, 77 + k as u64)).collect();
            let blocks: Vec<HostBuffer> = args.iter().zip(&dtypes).map(|(a, &d)| buffer(a, d)).collect();
            let list: Vec<HostArg<'_>> = blocks.iter().map(|b| HostArg::Block(b.bytes())).collect();
            let mut out = HostBuffer::zeroed(output, n);
            apply(op, dtype, output, &list, out.bytes_mut().expect("it is owned"), n);
            for i in (0..n).step_by(7) {
                let single: Vec<Scalar> = args.iter().map(|a| a[i]).collect();
                let alone = apply_scalar(op, dtype, output, &single);
                let mut bits = [0u8; 8];
                let width = output.bytes();
                bits[..width].copy_from_slice(&out.bytes()[i * width..(i + 1) * width]);
                let here = Scalar::from_bits(output, u64::from_le_bytes(bits));
                let both_nan = here.as_f64().is_nan() && alone.as_f64().is_nan();
                assert!(
                    both_nan || here.bits() == alone.bits(),
                    "{} of {single:?}: {here} in a block, {alone} alone",
                    op.name()
                );
            }
        }
    }
}

#[test]
fn casts_round_half_away_saturate_and_take_nan_to_zero() {
    let cast = |from: Scalar, to: DType| apply_scalar(ElementOp::Cast, from.dtype(), to, &[from]);
    for from in DType::ALL {
        for value in values(from, 200, 5) {
            for to in DType::ALL {
                let (actual, expected) = (cast(value, to), value.cast(to));
                let both_nan = actual.as_f64().is_nan() && expected.as_f64().is_nan();
                assert!(both_nan || actual.bits() == expected.bits(), "{value:?} to {to}: {actual}, not {expected}");
            }
        }
    }
    assert_eq!(cast(Scalar::F64(-2.5), DType::I32).bits(), Scalar::I32(-3).bits());
    assert_eq!(cast(Scalar::F32(f32::NAN), DType::I64).bits(), 0);
    assert_eq!(cast(Scalar::F64(1e300), DType::U8).bits(), 255);
}

#[test]
fn large_angles_keep_their_precision_where_the_result_nearly_vanishes() {
    // A search over all f32 found this number, which is 2.9e-8 quadrants below a multiple of the quadrant.
    let x = Scalar::F32(2.522_917_6e38);
    let sine = apply_scalar(ElementOp::Sin, DType::F32, DType::F32, &[x]).as_f64();
    assert!((sine / 4.624_949_951_738_393e-8 - 1.0).abs() < 1.5e-7, "{sine:e}");
    // This is the f64 that is nearest to a multiple of pi/2.
    let x = Scalar::F64(6381956970095103.0 * 2f64.powi(797));
    let cosine = apply_scalar(ElementOp::Cos, DType::F64, DType::F64, &[x]).as_f64();
    assert!((cosine / -4.687_165_924_254_628e-19 - 1.0).abs() < 4e-16, "{cosine:e}");
}

#[test]
fn integers_follow_exact_arithmetic() {
    use ElementOp::{Add, Div, Mod, Mul, Rem, Sub};
    let wide = |dtype: DType, v: i128| match dtype {
        DType::U8 => Scalar::U8(v.clamp(0, 255) as u8),
        DType::I32 => Scalar::I32(v.clamp(i32::MIN as i128, i32::MAX as i128) as i32),
        DType::U32 => Scalar::U32(v.clamp(0, u32::MAX as i128) as u32),
        _ => Scalar::I64(v.clamp(i64::MIN as i128, i64::MAX as i128) as i64),
    };
    let exact = |s: Scalar| match s {
        Scalar::U8(v) => v as i128,
        Scalar::I32(v) => v as i128,
        Scalar::U32(v) => v as i128,
        Scalar::I64(v) => v as i128,
        other => panic!("{other} is no integer"),
    };
    for dtype in [DType::U8, DType::I32, DType::U32, DType::I64] {
        let mut list = values(dtype, 120, 9);
        for edge in [i64::MIN as i128, -1, 0, 1, 2, i64::MAX as i128] {
            list.push(wide(dtype, edge));
        }
        for &x in &list {
            for &y in &list {
                let (a, b) = (exact(x), exact(y));
                let quotient = if b == 0 {
                    a.signum() << 70
                } else {
                    (2 * a.abs() + b.abs()) / (2 * b.abs()) * a.signum() * b.signum()
                };
                let rem = if b == 0 { 0 } else { a % b };
                let modulo = if b == 0 { a } else { ((a % b) + b) % b };
                for (op, expected) in
                    [(Add, a + b), (Sub, a - b), (Mul, a * b), (Div, quotient), (Rem, rem), (Mod, modulo)]
                {
                    let actual = apply_scalar(op, dtype, dtype, &[x, y]);
                    assert_eq!(actual.bits(), wide(dtype, expected).bits(), "{} of {x} and {y} in {dtype}", op.name());
                }
            }
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn the_costs_of_functions_are_of_the_order_of_their_lines() {
    let mut table = String::new();
    let mut wrong = 0;
    for &op in ElementOp::ALL {
        let lines = super::wgsl::lines_of(op).max(1) as f64;
        let cost = op.cost().weight() as f64;
        // The count includes lines that few elements execute: tables for hard cases, and ranges that exclude each
        // other.
        let is_wrong = cost > 5.0 * lines || lines > 12.0 * cost;
        wrong += is_wrong as u32;
        table += &format!("{} has {lines} lines and costs {cost}{}\n", op.name(), if is_wrong { " !" } else { "" });
    }
    assert!(wrong == 0, "{table}");
}

//! Indexed assignment on a GPU. The first passes find the winner for each place: the last of equal indices. The final
//! pass writes the values of winners. If one value is assigned to all places, no winner is needed.
//!
//! In: sizes. Out: the passes. Parameters from `OWN_WORDS` on: before, extent, after, count, elements to write.
//!
//! Must hold: an index outside of `0..extent` writes nothing and sets the fault word whose number is in parameter word
//! [`FAULT_WORD`]; the result does not depend on the order of invocations.

use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{FAULT_WORD, Module, OWN_WORDS, grid_of, segments_key};
use crate::kernels::wgsl::types::storage;

/// The passes of an indexed assignment over `[out, index, value, winner]`.
///
/// # Errors
/// `ErrorKind::Unsupported` if there are more elements than a grid covers.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::AssignIndex { dtype, index_dtype, before, extent, after, count, scalar_value } = *library else {
        panic!("LIB-1: {} is no indexed assignment", library.name());
    };
    let elements = count as u64 * before as u64 * after as u64;
    if count == 0 {
        return Ok(vec![]);
    }
    let elements = u32::try_from(elements)
        .map_err(|_| Error::new(ErrorKind::Unsupported, "an indexed assignment of more than 2^32 elements"))?;
    let params = vec![0, segment_shift, before, extent, after, count, elements];
    let pass = |name: String, wgsl: String, operands: &[u16], faults: bool, over: u32| {
        let grid = grid_of(over.div_ceil(256) as u64, "an indexed assignment")?;
        let operands = operands.to_vec();
        Ok::<_, Error>(Pass {
            key: format!("scatter {name}{}", segments_key(segments)),
            wgsl,
            params: params.clone(),
            operands,
            faults,
            grid,
        })
    };
    let mut passes = Vec::new();
    if scalar_value {
        passes.push(pass(format!("check {index_dtype}"), check(index_dtype, segments), &[1], true, count)?);
    } else {
        passes.push(pass(format!("begin {index_dtype}"), begin(index_dtype, segments), &[1, 3], false, count)?);
        passes.push(pass(format!("win {index_dtype}"), win(index_dtype, segments), &[1, 3], true, count)?);
    }
    if elements > 0 {
        let operands: &[u16] = if scalar_value { &[0, 1, 2] } else { &[0, 1, 2, 3] };
        let name = format!("write {dtype} {index_dtype} {scalar_value}");
        passes.push(pass(name, write(dtype, index_dtype, scalar_value, segments), operands, false, elements)?);
    }
    Ok(passes)
}

/// The text of `place(at)`, which returns the index as u32, or the extent if it lies outside.
fn place(index_dtype: DType) -> String {
    let extent = OWN_WORDS + 1;
    let (outside, value) = match index_dtype {
        DType::I32 => (format!("at < 0i || u32(at) >= params[{extent}]"), "u32(at)"),
        DType::I64 => (format!("at < 0li || at >= i64(params[{extent}])"), "u32(at)"),
        _ => (format!("at >= params[{extent}]"), "at"),
    };
    let ty = storage(index_dtype);
    format!(
        "fn place(at: {ty}) -> u32 {{\n    if ({outside}) {{ return params[{extent}]; }}\n    return {value};\n}}\n"
    )
}

/// A kernel with one invocation for each index. `share` binds the words that invocations share. `then` are the
/// statements, in which `i` is the number of the index and `to` its place.
fn each_index(index_dtype: DType, segments: &[u8], share: impl Fn(&mut Module), then: &str) -> String {
    let mut module = Module::new();
    module.operand("indices", storage(index_dtype), segments[1]);
    share(&mut module);
    module.add(&place(index_dtype));
    let count = OWN_WORDS + 3;
    module.finish(&format!(
        "    let i = index * 256u + lid;
    if (i >= params[{count}]) {{ return; }}
    let to = place(load_indices(i));
    {then}
"
    ))
}

/// The pass that sets the fault word if an index is outside.
fn check(index_dtype: DType, segments: &[u8]) -> String {
    let extent = OWN_WORDS + 1;
    let then = format!("if (to >= params[{extent}]) {{ atomicStore(&faults[params[{FAULT_WORD}]], 1u); }}");
    each_index(index_dtype, segments, |module| module.atomics("faults"), &then)
}

/// The pass that sets the winner of each assigned place to 0, "none". Before it, the scratch memory is undefined.
fn begin(index_dtype: DType, segments: &[u8]) -> String {
    let extent = OWN_WORDS + 1;
    let then = format!("if (to < params[{extent}]) {{ store_winner(to, 0u); }}");
    each_index(index_dtype, segments, |module| module.atomic_operand("winner", segments[3]), &then)
}

/// The pass that makes the last of equal indices the winner, and sets the fault word if an index is outside.
fn win(index_dtype: DType, segments: &[u8]) -> String {
    let extent = OWN_WORDS + 1;
    let then = format!(
        "if (to < params[{extent}]) {{ raise_winner(to, i + 1u); }} else {{ atomicStore(&faults[params[{FAULT_WORD}]], 1u); }}"
    );
    let share = |module: &mut Module| {
        module.atomic_operand("winner", segments[3]);
        module.atomics("faults");
    };
    each_index(index_dtype, segments, share, &then)
}

fn write(dtype: DType, index_dtype: DType, scalar_value: bool, segments: &[u8]) -> String {
    let mut module = Module::new();
    module.operand("result", storage(dtype), segments[0]);
    module.operand("indices", storage(index_dtype), segments[1]);
    module.operand("values", storage(dtype), segments[2]);
    if !scalar_value {
        module.operand("winner", "u32", segments[3]);
    }
    module.add(&place(index_dtype));
    let from = if scalar_value { "0u" } else { "e" };
    let lost = if scalar_value { "" } else { "    if (load_winner(to) != i + 1u) { return; }\n" };
    module.finish(&format!(
        "    let e = index * 256u + lid;
    if (e >= params[{elements}]) {{ return; }}
    let before = params[{own}];
    let i = e / before % params[{count}];
    let to = place(load_indices(i));
    if (to >= params[{extent}]) {{ return; }}
{lost}    let outer = e / before / params[{count}];
    store_result(e % before + before * (to + params[{extent}] * outer), load_values({from}));
",
        own = OWN_WORDS,
        extent = OWN_WORDS + 1,
        count = OWN_WORDS + 3,
        elements = OWN_WORDS + 4
    ))
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;
    use crate::kernels::wgsl::harness::gpu;

    fn library(dtype: DType, index_dtype: DType, sizes: [u32; 4], scalar_value: bool) -> Library {
        let [before, extent, after, count] = sizes;
        Library::AssignIndex { dtype, index_dtype, before, extent, after, count, scalar_value }
    }

    #[test]
    fn the_last_of_duplicates_wins_along_a_dimension() {
        let Some(gpu) = gpu() else { return };
        let (before, extent, after, count) = (3usize, 50usize, 2usize, 400usize);
        let indices: Vec<u32> = (0..count).map(|i| (i * 7919 % 37) as u32).collect();
        let values: Vec<u32> = (0..before * count * after).map(|v| v as u32 + 1000).collect();
        let mut expected: Vec<u32> = (0..(before * extent * after) as u32).collect();
        let base = expected.clone();
        for b in 0..after {
            for i in 0..count {
                for a in 0..before {
                    expected[a + before * (indices[i] as usize + extent * b)] = values[a + before * (i + count * b)];
                }
            }
        }
        let library = library(DType::F32, DType::U32, [3, 50, 2, 400], false);
        let passes = passes(&library, &[1; 4], 30).unwrap();
        let after = gpu.passes(&passes, &[1; 4], &[base, indices, values, vec![999; extent], vec![0]]);
        assert_eq!(after[0], expected);
        assert_eq!(after[4], [0]);
    }

    #[test]
    fn indices_outside_fault_and_write_nothing() {
        let Some(gpu) = gpu() else { return };
        let wide = |values: &[i64]| values.iter().flat_map(|v| [*v as u32, (*v >> 32) as u32]).collect::<Vec<u32>>();
        let cases = [
            (DType::I32, vec![1, -1i32 as u32, 3, 1]),
            (DType::U32, vec![1, 4, 3, 1]),
            (DType::U8, vec![1, 255, 3, 1]),
            (DType::I64, wide(&[1, 1 << 32, 3, 1])),
        ];
        for (index_dtype, indices) in cases {
            let library = library(DType::I32, index_dtype, [1, 4, 1, 4], true);
            let mut passes = passes(&library, &[1; 4], 30).unwrap();
            for pass in &mut passes {
                pass.params[FAULT_WORD] = 2;
            }
            let after = gpu.passes(&passes, &[1; 3], &[vec![0; 4], indices, vec![8], vec![0; 3]]);
            assert_eq!(after[0], [0, 8, 0, 8], "{index_dtype}");
            assert_eq!(after[3], [0, 0, 1], "{index_dtype}");
        }
    }

    #[test]
    fn what_lies_in_pieces_is_assigned_to_as_in_one() {
        let Some(gpu) = gpu() else { return };
        let (extent, count, shift) = (1000usize, 700usize, 8u32);
        let indices: Vec<u32> = (0..count).map(|i| (i * 7919 % 913) as u32).collect();
        let values: Vec<u32> = (0..count as u32).map(|v| v + 5000).collect();
        let base: Vec<u32> = (0..extent as u32).collect();
        let mut expected = base.clone();
        indices.iter().zip(&values).for_each(|(&i, &v)| expected[i as usize] = v);
        let apart = |words: &[u32]| words.chunks(1 << shift).map(<[u32]>::to_vec).collect::<Vec<_>>();
        let buffers = [apart(&base), apart(&indices), apart(&values), apart(&vec![9; extent])];
        let segments = [0, 1, 2, 3].map(|n: usize| buffers[n].len() as u8);
        let library = library(DType::F32, DType::U32, [1, extent as u32, 1, count as u32], false);
        let passes = passes(&library, &segments, shift).unwrap();
        let mut all = buffers.concat();
        all.push(vec![0]);
        let after = gpu.passes(&passes, &segments, &all);
        assert_eq!(after[..segments[0] as usize].concat(), expected);
        assert_eq!(after.last(), Some(&vec![0]));
    }

    #[test]
    fn no_index_is_no_pass() {
        let library = library(DType::F32, DType::U32, [1, 4, 1, 0], true);
        assert!(passes(&library, &[1; 4], 30).unwrap().is_empty());
    }
}

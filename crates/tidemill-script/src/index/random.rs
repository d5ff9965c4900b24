//! Tests of random arrays and subscripts against plain loops over coordinates, in host memory and on the runtime.

use super::*;
use crate::error::ScriptError;
use crate::rig;
use crate::value::{Data, Dims, Tensor};
use proptest::prelude::*;
use std::collections::HashMap;

/// A subscript that is not yet fitted to an array: its numbers are folded into the array's extent.
#[derive(Clone, Debug)]
enum Raw {
    Colon,
    One(usize),
    List(Vec<usize>),
    Steps(usize, usize, bool),
    Mask(Vec<bool>),
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        2 => Just(Raw::Colon),
        3 => (0..20usize).prop_map(Raw::One),
        3 => prop::collection::vec(0..20usize, 0..5).prop_map(Raw::List),
        2 => (0..20usize, 1..4usize, any::<bool>()).prop_map(|(first, step, down)| Raw::Steps(first, step, down)),
        2 => prop::collection::vec(any::<bool>(), 0..6).prop_map(Raw::Mask),
    ]
}

/// Returns positions below `extent`, and the value that names them.
fn settled(raw: &Raw, extent: usize, room: usize) -> (Vec<usize>, Value) {
    let n = extent + room;
    let numbers = |places: &[usize]| Value::row(places.iter().map(|&p| p as f64 + 1.0).collect());
    match raw {
        Raw::Colon => ((0..extent).collect(), Value::Colon),
        Raw::One(k) if n > 0 => (vec![k % n], Value::Num((k % n) as f64 + 1.0)),
        Raw::List(list) if n > 0 => {
            let places: Vec<usize> = list.iter().map(|k| k % n).collect();
            let value = numbers(&places);
            (places, value)
        }
        Raw::Steps(first, step, down) if n > 0 => {
            let mut places: Vec<usize> = (first % n..n).step_by(*step).collect();
            if *down {
                places.reverse();
            }
            let value = numbers(&places);
            (places, value)
        }
        Raw::Mask(mask) => {
            let mask: Vec<bool> = mask.iter().copied().take(n).collect();
            let places = mask.iter().enumerate().filter_map(|(i, &on)| on.then_some(i)).collect();
            let dims = Dims::new(&[1, mask.len()]);
            (places, Value::tensor(Tensor::new(dims, Data::Bool(mask))))
        }
        _ => (Vec::new(), Value::row(Vec::new())),
    }
}

fn counted(dims: &[usize]) -> Tensor {
    let dims = Dims::new(dims);
    let data = (1..=dims.elements()).map(|i| i as f64).collect();
    Tensor::new(dims, Data::F64(data))
}

/// Returns all coordinates of an array, in column-major order.
fn coordinates(extents: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &extent in extents.iter().rev() {
        all = (0..extent)
            .flat_map(|i| all.iter().map(move |rest| (i, rest)))
            .map(|(i, rest)| {
                let mut c = vec![i];
                c.extend(rest);
                c
            })
            .collect();
    }
    // The first coordinate runs fastest.
    all.sort_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
    all
}

fn at(extents: &[usize], c: &[usize]) -> usize {
    let mut stride = 1;
    c.iter().zip(extents).fold(0, |place, (&i, &extent)| {
        let here = place + i * stride;
        stride *= extent;
        here
    })
}

/// Returns the extents as `count` subscripts see them.
fn seen(dims: &[usize], count: usize) -> Vec<usize> {
    let mut extents: Vec<usize> = (0..count).map(|d| dims.get(d).copied().unwrap_or(1)).collect();
    extents[count - 1] *= dims.iter().skip(count).product::<usize>();
    extents
}

/// Runs a case in host memory and on the runtime.
fn both<T>(mut case: impl FnMut(&mut Env, bool) -> Result<T, ScriptError>) -> Vec<Result<T, ScriptError>> {
    let mut lazy = rig::env_lazy();
    vec![case(&mut rig::env(), false), case(&mut lazy, true)]
}

fn placed(env: &Env, value: &Value, away: bool) -> Value {
    if away { rig::to_runtime(env, value) } else { value.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn reading_gives_the_elements_that_loops_give(
        dims in prop::collection::vec(0..5usize, 2..5),
        raws in prop::collection::vec(raw(), 1..5),
        lazy_index in any::<bool>(),
    ) {
        let tensor = counted(&dims);
        let extents = seen(&tensor.dims, raws.len());
        let chosen: Vec<_> = raws.iter().zip(&extents).map(|(r, &n)| settled(r, n, 0)).collect();
        let lens: Vec<usize> = chosen.iter().map(|(places, _)| places.len()).collect();
        let expected: Vec<f64> = coordinates(&lens)
            .iter()
            .map(|c| {
                let c: Vec<usize> = c.iter().zip(&chosen).map(|(&i, (places, _))| places[i]).collect();
                at(&extents, &c) as f64 + 1.0
            })
            .collect();
        let results = both(|env, away| {
            let base = placed(env, &Value::tensor(tensor.clone()), away);
            let index: Vec<Value> = chosen.iter().map(|(_, v)| placed(env, v, away && lazy_index)).collect();
            let value = rig::settle(env, |env| paren(env, &base, &index))?;
            rig::to_host(env, &value)
        });
        for result in results {
            let got = result.unwrap();
            prop_assert_eq!(&got.data.to_f64(), &expected);
            if raws.len() > 1 {
                prop_assert_eq!(&got.dims, &Dims::new(&lens));
            }
        }
    }

    #[test]
    fn writing_changes_the_elements_that_loops_change(
        dims in prop::collection::vec(1..4usize, 2..4),
        raws in prop::collection::vec(raw(), 2..4),
        room in 0..3usize,
        scalar in any::<bool>(),
        lazy_value in any::<bool>(),
    ) {
        let tensor = counted(&dims);
        // With fewer subscripts than dimensions an array cannot grow.
        let room = if raws.len() < tensor.dims.len() { 0 } else { room };
        let extents = seen(&tensor.dims, raws.len());
        let chosen: Vec<_> = raws.iter().zip(&extents).map(|(r, &n)| settled(r, n, room)).collect();
        let lens: Vec<usize> = chosen.iter().map(|(places, _)| places.len()).collect();
        let grown: Vec<usize> = chosen.iter().zip(&extents)
            .map(|((places, _), &n)| places.iter().map(|p| p + 1).max().unwrap_or(0).max(n)).collect();
        let n: usize = lens.iter().product();
        let given: Vec<f64> = (0..if scalar { 1 } else { n }).map(|i| -1.0 - i as f64).collect();
        let shape = if scalar { Dims::scalar() } else { Dims::new(&lens) };
        let value = Value::tensor(Tensor::new(shape, Data::F64(given.clone())));
        let mut model: HashMap<Vec<usize>, f64> =
            coordinates(&extents).into_iter().enumerate().map(|(i, c)| (c, i as f64 + 1.0)).collect();
        for (i, c) in coordinates(&lens).iter().enumerate() {
            let c: Vec<usize> = c.iter().zip(&chosen).map(|(&i, (places, _))| places[i]).collect();
            model.insert(c, given[if scalar { 0 } else { i }]);
        }
        let expected: Vec<f64> = coordinates(&grown).iter().map(|c| model.get(c).copied().unwrap_or(0.0)).collect();
        let results = both(|env, away| {
            let mut target = Some(placed(env, &Value::tensor(tensor.clone()), away));
            let value = placed(env, &value, away && lazy_value);
            let steps = [Access::Paren(chosen.iter().map(|(_, v)| v.clone()).collect())];
            rig::settle(env, |env| assign(env, &mut target, &steps, value.clone()))?;
            rig::to_host(env, target.as_ref().unwrap())
        });
        for result in results {
            let got = result.unwrap();
            prop_assert_eq!(&got.data.to_f64(), &expected);
            if grown != extents {
                prop_assert_eq!(&got.dims, &Dims::new(&grown));
            }
        }
    }

    #[test]
    fn linear_writes_change_what_loops_change(
        n in 1..8usize,
        column in any::<bool>(),
        raw in raw(),
        room in 0..4usize,
        lazy_index in any::<bool>(),
        lazy_value in any::<bool>(),
        scalar in any::<bool>(),
    ) {
        let (places, index) = settled(&raw, n, room);
        let given: Vec<f64> = (0..if scalar { 1 } else { places.len() }).map(|i| -1.0 - i as f64).collect();
        let mut expected: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        for (i, &place) in places.iter().enumerate() {
            if place >= expected.len() {
                expected.resize(place + 1, 0.0);
            }
            expected[place] = given[if scalar { 0 } else { i }];
        }
        let vector = |v: Vec<f64>| if column { Value::column(v) } else { Value::row(v) };
        let results = both(|env, away| {
            let mut target = Some(placed(env, &vector((1..=n).map(|i| i as f64).collect()), away));
            let value = placed(env, &Value::row(given.clone()), away && lazy_value);
            let steps = [Access::Paren(smallvec::smallvec![placed(env, &index, away && lazy_index)])];
            rig::settle(env, |env| assign(env, &mut target, &steps, value.clone()))?;
            rig::to_host(env, target.as_ref().unwrap())
        });
        for result in results {
            let got = result.unwrap();
            prop_assert_eq!(&got.data.to_f64(), &expected);
            let m = expected.len();
            prop_assert_eq!(&got.dims[..], &if column && n > 1 { [m, 1] } else { [1, m] });
        }
    }

    #[test]
    fn deleting_leaves_the_others(
        dims in prop::collection::vec(1..5usize, 2..4),
        raw in raw(),
        along in 0..3usize,
    ) {
        let tensor = counted(&dims);
        let along = along % tensor.dims.len();
        let (places, index) = settled(&raw, tensor.dims.extent(along), 0);
        let rest: Vec<f64> = coordinates(&tensor.dims)
            .iter()
            .enumerate()
            .filter(|(_, c)| !places.contains(&c[along]))
            .map(|(i, _)| i as f64 + 1.0)
            .collect();
        let results = both(|env, away| {
            let mut target = placed(env, &Value::tensor(tensor.clone()), away);
            let subscripts = (0..tensor.dims.len()).map(|d| if d == along { index.clone() } else { Value::Colon });
            let steps = [Access::Paren(subscripts.collect())];
            rig::settle(env, |env| delete(env, &mut target, &steps))?;
            rig::to_host(env, &target)
        });
        for result in results {
            prop_assert_eq!(&result.unwrap().data.to_f64(), &rest);
        }
    }

    #[test]
    fn joining_puts_parts_one_after_the_other(
        dims in prop::collection::vec(1..4usize, 2..4),
        along in 0..3usize,
        extents in prop::collection::vec(0..4usize, 2..5),
        which in any::<u8>(),
    ) {
        let parts: Vec<Tensor> = extents.iter().map(|&n| counted(&Dims::new(&dims).with(along, n))).collect();
        let whole = Dims::new(&dims).with(along, extents.iter().sum());
        let results = both(|env, away| {
            let values: Vec<Value> = parts
                .iter()
                .enumerate()
                .map(|(i, t)| placed(env, &Value::tensor(t.clone()), away && which >> i & 1 == 1))
                .collect();
            let value = rig::settle(env, |env| concatenate(env, along, &values))?;
            rig::to_host(env, &value)
        });
        let expected: Vec<f64> = coordinates(&whole)
            .iter()
            .map(|c| {
                let mut c: Vec<usize> = c.clone();
                c.resize(c.len().max(along + 1), 0);
                let mut part = 0;
                while c[along] >= extents[part] {
                    c[along] -= extents[part];
                    part += 1;
                }
                let own: Vec<usize> = (0..c.len()).map(|d| parts[part].dims.extent(d)).collect();
                at(&own, &c) as f64 + 1.0
            })
            .collect();
        for result in results {
            let got = result.unwrap();
            prop_assert_eq!(&got.data.to_f64(), &expected);
            prop_assert_eq!(&got.dims, &whole);
        }
    }
}

//! Tests reading, writing, deleting and joining against results of Octave (`recorded/octave.txt`), in host memory and
//! with every array on the runtime, and random indices against plain loops.

use super::*;
use crate::error::ScriptError;
use crate::source::Source;
use crate::value::{Data, Dims, Form, StructArray, Tensor};
use crate::vm::{End, Interp, drive};
use crate::{compile, rig, syntax};
use futures::executor::block_on;
use num_complex::Complex64;

/// Statements where MATLAB differs from Octave, or Tidemill from both on purpose, and their results here.
const DEVIATIONS: &[(&str, &str)] = &[
    // MATLAB: `[]` takes on the class of the value that is put into it.
    ("z(2)={1};y=z", "cell 1x2 {double 0x0 ,|double 1x1 1,}"),
    ("z(2)=struct(\"a\",1);y=z", "struct 1x2 <a> {a=double 0x0 ,|a=double 1x1 1,}"),
    ("z(1)=s1;y=z", "struct 1x1 <a> {a=double 1x1 5,}"),
    ("y(2,:).a=1", "struct 2x1 <a> {a=double 0x0 ,|a=double 1x1 1,}"),
    // MATLAB: after single elements are deleted from a matrix, it is a row; the third dimension can be deleted from.
    ("A([1 3 5])=[];y=A", "double 1x6 4,2,8,3,6,9,"),
    ("A(logical(eye(3)))=[];y=A", "double 1x6 4,7,2,8,3,6,"),
    ("B([1 2])=[];y=size(B)", "double 1x2 1,22,"),
    ("x(:,:,1)=[];y=x", "double 1x3x0 ,"),
    // MATLAB: the left side keeps its class, whatever the value's class.
    ("lg(2)=single(3);y=lg", "logical 1x3 1,1,1,"),
    ("str(2)=int8(4);y=str", "char 1x3 97,4,99,"),
    ("str(2)=int8(66);y=str", "char 1x3 97,66,99,"),
    ("str(2)=single(66);y=str", "char 1x3 97,66,99,"),
    ("b(1)=\"a\"", "error: octave_base_value::bool_array_value(): wrong type argument 'string'"),
    // MATLAB: text of different lengths is not padded; rows are joined before they are stacked.
    ("y=[\"abc\";\"de\"]", "error: vertical dimensions mismatch (1x3 vs 1x2)"),
    ("y=[\"a\";\"b\",\"c\"]", "error: vertical dimensions mismatch (1x1 vs 1x2)"),
    ("y=[1,2;{3},4]", "error: vertical dimensions mismatch (1x1 vs 1x2)"),
    ("y=[1,2;st(1)]", "error: concatenation operator not implemented for 'matrix' by 'scalar struct' operations"),
    // MATLAB: a cell takes structs in; a handle alone between brackets stays a handle.
    ("y=[s1,{1}]", "cell 1x2 {struct 1x1 <a> {a=double 1x1 5,}|double 1x1 1,}"),
    ("y=[s1,{}]", "cell 1x1 {struct 1x1 <a> {a=double 1x1 5,}}"),
    ("y=cat(1,[],s1)", "struct 1x1 <a> {a=double 1x1 5,}"),
    ("y=cat(1,zeros(1,0),[1 2])", "double 1x2 1,2,"),
    ("y=[@sin]", "function_handle"),
];

/// Statements whose errors have other words here.
const OTHER_WORDS: &[&str] = &[
    "y=[@sin,@cos]",
    "y=[@sin,1]",
    "y=[@sin,[]]",
    "y=[[],@sin]",
    "y=cat(1,@sin,@cos)",
    "y=cat(1,\"abc\",\"de\")",
    "y=cat(2,[1 2],[3;4])",
    "y=horzcat([1 2],[3;4])",
    "y=vertcat([1 2],[3 4 5])",
    "y=[s1,\"a\"]",
    "y=[int8(1),1i]",
    "y=[int8(1),complex(1,0)]",
    "r{1}",
    "r.a",
];

/// Statements that need the machine, or functions that it calls.
const NOT_OURS: &[&str] = &[
    // The recording has only six digits of this.
    "y=[int64(9007199254740993),1]",
    "y=cat(1.5,1,2)",
    "x(1.5:3)",
    "[st.a]=deal(7,8,9);y=st",
    "[c{1:2}]=deal(7,8);y=c",
    "y(2)=[]",
    "a",
];

fn row(class: fn(Vec<f64>) -> Data, elements: &[f64]) -> Value {
    Value::tensor(Tensor::new(Dims::new(&[1, elements.len()]), class(elements.to_vec())))
}

/// Returns the variables that the recorded statements use.
fn variables() -> Vec<(&'static str, Value)> {
    let three = || vec![Value::Num(1.0), Value::Num(2.0), Value::Num(3.0)];
    let mut s1 = StructArray::scalar();
    s1.set("a", 5.0);
    let mut st = StructArray::empty(Dims::new(&[1, 3]));
    st.fields.insert("a".into(), three());
    let square = vec![1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0];
    let block = (1..=24).map(f64::from).collect();
    let complex = vec![Complex64::new(1.0, 2.0), Complex64::new(3.0, 0.0), Complex64::new(4.0, 0.0)];
    let range = Tensor {
        form: Form::Range { limit: 5.0 },
        ..Tensor::new(Dims::new(&[1, 5]), Data::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0]))
    };
    vec![
        ("x", Value::row(vec![1.0, 2.0, 3.0])),
        ("A", Value::tensor(Tensor::new(Dims::new(&[3, 3]), Data::F64(square)))),
        ("B", Value::tensor(Tensor::new(Dims::new(&[2, 3, 4]), Data::F64(block)))),
        ("c", Value::cell(Dims::new(&[1, 3]), three())),
        ("st", Value::Struct(Arc::new(st))),
        ("s1", Value::Struct(Arc::new(s1))),
        ("str", Value::string("abc")),
        ("z", Value::empty()),
        ("f", Value::Num(5.0)),
        ("b", Value::Bool(true)),
        ("r", Value::tensor_as_is(range)),
        ("i8", row(|v| Data::I8(v.iter().map(|&x| x as i8).collect()), &[1.0, 2.0, 3.0])),
        ("sg", row(|v| Data::F32(v.iter().map(|&x| x as f32).collect()), &[1.0, 2.0, 3.0])),
        ("lg", row(|v| Data::Bool(v.iter().map(|&x| x != 0.0).collect()), &[1.0, 0.0, 1.0])),
        ("cx", Value::tensor(Tensor::new(Dims::new(&[1, 3]), Data::C64(complex)))),
        ("col", Value::column(vec![1.0, 2.0, 3.0])),
    ]
}

/// Formats a value as the recordings do; arrays of the runtime are awaited.
fn describe(env: &mut Env, value: &Value) -> String {
    let head = format!("{} {}", value.class_name(), value.dims());
    match value {
        Value::Cell(cell) => {
            let parts: Vec<String> = cell.items.iter().map(|v| describe(env, v)).collect();
            format!("{head} {{{}}}", parts.join("|"))
        }
        Value::Struct(array) => {
            let names: Vec<&str> = array.fields.keys().map(|k| &**k).collect();
            let mut parts = Vec::new();
            for i in 0..array.len() {
                for (name, values) in &array.fields {
                    parts.push(format!("{name}={}", describe(env, &values[i])));
                }
            }
            format!("{head} <{}> {{{}}}", names.join(","), parts.join("|"))
        }
        Value::Function(_) => "function_handle".into(),
        array => match rig::to_host(env, array) {
            Err(error) => format!("error: {}", error.message),
            Ok(t) if t.data.is_complex() => {
                let all = (0..t.len()).map(|i| t.data.c64_at(i));
                format!("complex {head} {}", all.map(|z| format!("{}:{},", z.re, z.im)).collect::<String>())
            }
            Ok(t) if t.is_empty() => format!("{head} ,"),
            Ok(t) => {
                let all = (0..t.len()).map(|i| t.data.f64_at(i));
                format!("{head} {}", all.map(|x| format!("{x},")).collect::<String>())
            }
        },
    }
}

/// Returns `y` after a statement. With `away`, every array begins on the runtime.
fn after(statement: &str, away: bool) -> String {
    let outcome = (|| -> Result<String, ScriptError> {
        let file = syntax::parse(&Source::new("case", format!("{statement};\n")))?;
        let unit = Arc::new(compile::compile(&file, false)?);
        let env = if away { rig::env_lazy() } else { rig::env() };
        let mut interp = Interp::new(env);
        interp.begin(&unit);
        for (name, value) in variables() {
            let value = if away { rig::to_runtime(&interp.env, &value) } else { value };
            interp.set_variable(name, value).map_err(|_| ScriptError::new("not set"))?;
        }
        match block_on(drive(&mut interp)) {
            End::Failed(error) => Err(*error),
            _ => Ok(match interp.take_workspace().into_iter().find(|(name, _)| &**name == "y") {
                Some((_, value)) => describe(&mut interp.env, &value),
                None => "nothing".into(),
            }),
        }
    })();
    outcome.unwrap_or_else(|error| format!("error: {}", error.message))
}

/// Whether two outcomes are the same. The variable in an index error does not count, since the machine puts it in.
fn agree(statement: &str, expected: &str, got: &str) -> bool {
    let unnamed = |text: &str| match (text.strip_prefix("error: "), text.split_once('(')) {
        (Some(_), Some((_, rest))) if rest.contains("): out of bound") || rest.contains("): subscripts") => {
            format!("error: index ({rest}")
        }
        _ => text.to_string(),
    };
    let both_fail = expected.starts_with("error") && got.starts_with("error");
    unnamed(expected) == unnamed(got) || NOT_OURS.contains(&statement) || both_fail && OTHER_WORDS.contains(&statement)
}

fn check_recorded(away: bool) {
    let mut wrong = Vec::new();
    for line in include_str!("recorded/octave.txt").lines() {
        let (statement, octave) = line.split_once('\t').unwrap();
        let deviation = DEVIATIONS.iter().find(|(s, _)| *s == statement).map(|(_, gives)| *gives);
        let expected = deviation.unwrap_or(octave);
        let got = after(statement, away);
        if !agree(statement, expected, &got) {
            wrong.push(format!("{statement}\n    octave {expected}\n    here   {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn statements_do_what_octave_does() {
    check_recorded(false);
}

#[test]
fn statements_on_the_runtime_do_what_octave_does() {
    check_recorded(true);
}

#[test]
fn a_target_takes_as_many_values_as_it_has_places() {
    let mut env = rig::env();
    let numbers = |v: &[f64]| v.iter().map(|&x| Value::Num(x)).collect::<Vec<_>>();
    let brace = |v: &[f64]| Access::Brace(smallvec::smallvec![Value::row(v.to_vec())]);
    let round = |v: &[f64]| Access::Paren(smallvec::smallvec![Value::row(v.to_vec())]);
    let cases: [(&str, Vec<Access>, usize, &str); 5] = [
        ("c", vec![brace(&[1.0, 2.0])], 2, "cell 1x3 {double 1x1 7,|double 1x1 8,|double 1x1 3,}"),
        (
            "c",
            vec![Access::Brace(smallvec::smallvec![Value::Colon])],
            3,
            "cell 1x3 {double 1x1 7,|double 1x1 8,|double 1x1 9,}",
        ),
        ("st", vec![Access::Field("a".into())], 3, "struct 1x3 <a> {a=double 1x1 7,|a=double 1x1 8,|a=double 1x1 9,}"),
        (
            "st",
            vec![round(&[3.0, 1.0]), Access::Field("a".into())],
            2,
            "struct 1x3 <a> {a=double 1x1 8,|a=double 1x1 2,|a=double 1x1 7,}",
        ),
        (
            "new",
            vec![Access::Field("f".into()), brace(&[1.0, 2.0])],
            2,
            "struct 1x1 <f> {f=cell 1x2 {double 1x1 7,|double 1x1 8,}}",
        ),
    ];
    for (name, steps, count, expected) in cases {
        let mut target = variables().into_iter().find(|(n, _)| *n == name).map(|(_, v)| v);
        let places = rig::settle(&mut env, |env| places(env, target.as_ref(), &steps)).unwrap();
        assert_eq!(places, count, "{name}");
        let values = numbers(&[7.0, 8.0, 9.0][..count]);
        rig::settle(&mut env, |env| assign_list(env, &mut target, &steps, values.clone())).unwrap();
        assert_eq!(describe(&mut env, &target.unwrap()), expected);
    }
}

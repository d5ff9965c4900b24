//! Files that Python's packages wrote (`data/make.py`) are read; files that are written here are theirs to the byte, or
//! come back as they were; damaged ones are errors.

#[path = "../../../tests/common/mod.rs"]
mod common;

use common::{gpu, host, until, wait};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tidemill::{Array, ErrorKind, HostAny, Result, Session};
use tidemill_files::{AnyArray, Source, Tensor, csv, npy, npz, safetensors};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Extents and elements, in column-major order.
fn elements(array: &Array) -> (Vec<usize>, Vec<f64>) {
    let all = wait(array.gather_any()).unwrap();
    (all.shape().dims().to_vec(), all.to_f64())
}

/// `x[i, j] = 3 i + j`, in column-major order.
const NUMBERS: [f64; 6] = [0.0, 3.0, 1.0, 4.0, 2.0, 5.0];

/// `x[i, j, k] = 12 i + 4 j + k`.
fn pages() -> (Vec<usize>, Vec<f64>) {
    let element = |at: usize| (12 * (at % 2) + 4 * (at / 2 % 3) + at / 6) as f64;
    (vec![2, 3, 4], (0..24).map(element).collect())
}

/// A file's array, which may be complex: real parts, imaginary parts.
fn read(s: &Session, source: Result<Source>) -> Result<(AnyArray, Vec<f64>, Vec<f64>)> {
    let array = wait(source?.read(s))?;
    let (re, im) = match &array {
        AnyArray::Real(array) => (array.clone(), array * 0.0),
        AnyArray::Complex(array) => (array.re(), array.im()),
    };
    Ok((array, wait(re.gather_any())?.to_f64(), wait(im.gather_any())?.to_f64()))
}

#[test]
fn every_type_of_numpy_has_the_same_indices_here() {
    let rt = host();
    let s = rt.session("types").open();
    let archive = wait(npz::open(data("types.npz"))).unwrap();
    let becomes = [
        ("f2", "f32"),
        ("f4", "f32"),
        ("f8", "f64"),
        ("i1", "i32"),
        ("u1", "u8"),
        ("i2", "i32"),
        ("u2", "u32"),
        ("i4", "i32"),
        ("u4", "u32"),
        ("i8", "i64"),
        ("u8", "i64"),
        ("c8", "f32"),
        ("c16", "f64"),
        ("b1", "bool"),
    ];
    let mut seen = 0;
    for (name, dtype) in becomes {
        for name in [name.to_owned(), format!("big_{name}")] {
            if !archive.names().any(|known| known == name) {
                assert!(name.ends_with('1'), "{name}");
                continue;
            }
            seen += 1;
            let source = archive.get(&name);
            assert_eq!(source.as_ref().unwrap().dims(), [2, 3]);
            let (array, re, im) = read(&s, source).unwrap();
            assert_eq!((array.shape().unwrap().dims(), array.dtype().unwrap().name()), (&[2, 3][..], dtype), "{name}");
            assert_eq!(re, if name == "b1" { NUMBERS.map(|x| x % 2.0) } else { NUMBERS }, "{name}");
            assert_eq!(array.is_complex(), name.contains('c'), "{name}");
            assert_eq!(im, NUMBERS.map(|x| if array.is_complex() { -x } else { 0.0 }), "{name}");
        }
    }
    assert_eq!(seen, 25);
    let error = archive.get("text").unwrap_err();
    assert!(error.kind() == ErrorKind::DType && error.to_string().contains("<U1"), "{error}");
    let error = archive.get("f3").unwrap_err();
    assert!(error.kind() == ErrorKind::Argument && error.to_string().contains("\"f2\""), "{error}");
    let all = wait(archive.read_all(&s)).unwrap_err();
    assert!(all.to_string().contains("\"text\""), "{all}");
}

#[test]
fn arrays_of_any_order_and_rank_are_read_and_written_as_numpy_does() {
    let rt = host();
    let (s, folder) = (rt.session("npy").open(), folder());
    let real = |name: &str| wait(npy::read(&s, data(name))).unwrap().real().unwrap();
    for name in ["rows.npy", "columns.npy", "version2.npy"] {
        assert_eq!(elements(&real(name)), pages(), "{name}");
    }
    assert_eq!(elements(&real("vector.npy")), (vec![3, 1], vec![0.0, 1.0, 2.0]));
    assert_eq!(elements(&real("scalar.npy")), (vec![1, 1], vec![2.5]));
    assert_eq!(elements(&real("empty.npy")), (vec![0, 3], vec![]));
    let halves = elements(&real("halves.npy")).1;
    assert_eq!(halves[..4], [65504.0, 2f64.powi(-24), f64::INFINITY, f64::NEG_INFINITY]);
    assert!(halves[4].is_nan() && halves[5] == 0.0 && halves[5].is_sign_negative());
    let error = wait(npy::read(&s, data("large.npy"))).unwrap_err();
    assert!(error.kind() == ErrorKind::DType && error.to_string().contains("element 2"), "{error}");

    // To the byte, headers included.
    let path = folder.path().join("x.npy");
    let same = |name: &str| assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(data(name)).unwrap(), "{name}");
    wait(npy::write(&path, &real("rows.npy"))).unwrap();
    same("columns.npy");
    wait(npy::write(&path, Tensor::vector(real("vector.npy")))).unwrap();
    same("vector.npy");
    wait(npy::write(&path, &real("empty.npy"))).unwrap();
    assert_eq!(wait(npy::open(&path)).unwrap().dims(), [0, 3]);
    let error = wait(npy::write(&path, Tensor::vector(real("rows.npy")))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
}

#[test]
fn archives_and_tensors_come_back_as_they_were_stored() {
    let rt = host();
    let (s, folder) = (rt.session("archives").open(), folder());
    let deflated = wait(npz::open(data("deflated.npz"))).unwrap();
    let rows = wait(deflated.read(&s, "rows")).unwrap().real().unwrap();
    assert_eq!(elements(&rows).1, (0..600).map(|at| (30 * (at % 20) + at / 20) as f64).collect::<Vec<f64>>());

    // The format's own library writes the same bytes.
    let theirs = wait(safetensors::open(data("weights.safetensors"))).unwrap();
    assert_eq!(theirs.notes()["made by"], "make.py");
    let all = wait(theirs.read_all(&s)).unwrap();
    let real = |name: &str| all[name].clone().real().unwrap();
    assert_eq!(elements(&real("pages")), pages());
    assert_eq!(elements(&real("weights")), (vec![2, 3], NUMBERS.to_vec()));
    assert_eq!(elements(&real("mask")).1, NUMBERS.map(|x| x % 2.0));
    let path = folder.path().join("x.safetensors");
    let tensors = all.iter().map(|(name, array)| {
        let is_vector = matches!(name.as_str(), "biases" | "steps");
        (name, if is_vector { Tensor::vector(array) } else { Tensor::from(array) })
    });
    wait(safetensors::write_with_notes(&path, tensors, theirs.notes().clone())).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(data("weights.safetensors")).unwrap());

    let narrow = wait(safetensors::open(data("narrow.safetensors"))).unwrap();
    let bf16 = elements(&wait(narrow.read(&s, "bf16")).unwrap().real().unwrap()).1;
    // The upper half of 3.0e38.
    assert_eq!(bf16, [1.0, -2.5, f64::from(f32::from_bits(0x7f61_0000))]);
    let error = narrow.get("f8").unwrap_err();
    assert!(error.kind() == ErrorKind::DType && error.to_string().contains("F8_E4M3"), "{error}");

    let complex = s.linspace(0.0f64, 1.0, 12).reshape([3, 4]).complex(&s.ones::<f64>([3, 4]));
    let error = wait(safetensors::write(&path, [("z", &complex)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let twice = [("a", Tensor::from(&rows)), ("a", Tensor::from(&complex))];
    assert_eq!(wait(npz::write(&path, twice)).unwrap_err().kind(), ErrorKind::Argument);
    let path = folder.path().join("x.npz");
    for compressed in [false, true] {
        let tensors = [("rows", Tensor::from(&rows)), ("z", Tensor::from(&complex))];
        match compressed {
            false => wait(npz::write(&path, tensors)).unwrap(),
            true => wait(npz::write_compressed(&path, tensors)).unwrap(),
        }
        let back = wait(npz::open(&path)).unwrap();
        assert_eq!(elements(&wait(back.read(&s, "rows")).unwrap().real().unwrap()), elements(&rows));
        let z = wait(back.read(&s, "z")).unwrap().complex();
        assert_eq!(wait(z.gather::<f64>()).unwrap(), wait(complex.gather::<f64>()).unwrap());
    }
}

#[test]
fn tables_are_read_with_names_and_gaps_and_written_to_the_last_digit() {
    let rt = host();
    let (s, folder) = (rt.session("tables").open(), folder());
    let table = wait(csv::open(data("pandas.csv"), &csv::Options::default())).unwrap();
    assert_eq!(table.columns(), ["time", "height, m"]);
    let x = elements(&wait(table.read(&s)).unwrap().real().unwrap());
    assert_eq!((x.0, &x.1[..4], x.1[5]), (vec![3, 2], &[0.0, 1.0, 2.0, 1.5][..], 1e-300));
    assert!(x.1[4].is_nan());
    let options = csv::Options::default().comment(b'#');
    let sevenths = wait(csv::read(&s, data("numpy.csv"), &options)).unwrap().real().unwrap();
    assert_eq!(elements(&sevenths).1, NUMBERS.map(|x| x / 7.0));

    let path = folder.path().join("x.csv");
    let hard = [0.1, -0.0, 1e300, 5e-324, f64::NAN, f64::NEG_INFINITY, 1.0 / 3.0, 123456789.0];
    let x = s.from_slice(&hard, [4, 2]).unwrap();
    let options = csv::Options::default().delimiter(b'\t').names(["a", "b\tc"]);
    wait(csv::write(&path, &x, &options)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "a\t\"b\tc\"\n0.1\tNaN\n-0\t-inf\n1e300\t0.3333333333333333\n5e-324\t123456789\n");
    let back = elements(&wait(csv::read(&s, &path, &options)).unwrap().real().unwrap()).1;
    assert_eq!(back.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), hard.map(f64::to_bits));

    let integers = csv::Options::default().dtype(tidemill::DType::I64);
    std::fs::write(&path, "1,-2\n9223372036854775807,4\n5,x6\n").unwrap();
    let error = wait(csv::read(&s, &path, &integers)).unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.to_string().contains("line 3, column 2: \"x6\""), "{error}");
    std::fs::write(&path, "1,-2\n9223372036854775807\n").unwrap();
    let error = wait(csv::open(&path, &integers)).unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.to_string().contains("line 2 has 1"), "{error}");
    std::fs::write(&path, "1,-2\n9223372036854775807,4").unwrap();
    let HostAny::I64(whole) =
        wait(wait(csv::read(&s, &path, &integers)).unwrap().real().unwrap().gather_any()).unwrap()
    else {
        panic!("integers were asked for")
    };
    assert_eq!(whole.as_slice(), [1, i64::MAX, -2, 4]);
}

#[test]
fn files_of_several_times_the_budget_go_through_in_pieces() {
    const BUDGET: u64 = 2 << 20;
    let (rows, columns) = (1 << 11, 1 << 10);
    let folder = folder();
    let (by_rows, by_columns) = (folder.path().join("rows.npy"), folder.path().join("columns.npy"));
    let rt = tidemill::Runtime::builder().device("host").host_budget(BUDGET).start_blocking().unwrap();
    let s = rt.session("pieces").open();
    for (path, along) in [(&by_rows, 0), (&by_columns, 1)] {
        let mut writer = wait(npy::Writer::create(path, tidemill::DType::F32, &[rows, columns], along)).unwrap();
        let (length, step) = if along == 0 { (rows, 100) } else { (columns, 50) };
        for from in (0..length).step_by(step) {
            let count = step.min(length - from);
            let (down, across) = match along {
                0 => (s.arange(from as f32, (from + count) as f32, 1.0).t(), s.arange(0.0f32, columns as f32, 1.0)),
                _ => (s.arange(0.0f32, rows as f32, 1.0).t(), s.arange(from as f32, (from + count) as f32, 1.0)),
            };
            wait(writer.append(&(down * 1024.0 + across))).unwrap();
        }
        let error = wait(writer.append(&s.ones::<f32>([1, 1]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        wait(writer.finish()).unwrap();
        let source = wait(npy::open(path)).unwrap();
        let mut pieces = source.pieces(&s, 300 << 10);
        let (mut next, mut sum) = (0, 0.0);
        while let Some(piece) = pieces.next_blocking() {
            let piece = piece.unwrap();
            assert_eq!((piece.dim, piece.range.start), (along, next));
            next = piece.range.end;
            let array = piece.array.real().unwrap();
            let corner = wait(array.slice((0, 0)).item::<f32>()).unwrap();
            assert_eq!(corner, (piece.range.start * if along == 0 { 1024 } else { 1 }) as f32);
            sum += wait(array.cast::<f64>().sum(..).item::<f64>()).unwrap();
        }
        let elements = (rows * columns) as f64;
        assert_eq!((next, sum), (length, elements * (elements - 1.0) / 2.0));
    }
    // No device of this runtime holds the whole.
    let error = wait(npy::read(&s, &by_rows)).map(|x| wait(x.real().unwrap().sum(..).item::<f32>()));
    assert_eq!(error.and_then(|sum| sum).unwrap_err().kind(), ErrorKind::OutOfMemory);
    // A GPU does, and the host's budget is small all the same.
    if let Some(rt) = gpu(|b| b.host_budget(BUDGET)) {
        let s = rt.session("assembled").open();
        for path in [&by_rows, &by_columns] {
            let x = wait(npy::read(&s, path)).unwrap().real().unwrap();
            assert_eq!(wait(x.slice((3, 5)).item::<f32>()).unwrap(), 3.0 * 1024.0 + 5.0);
            let right = x.eq_to(&(s.arange(0.0f32, rows as f32, 1.0).t() * 1024.0 + s.arange(0.0f32, 1024.0, 1.0)));
            assert_eq!(wait(right.mean(..).item::<f64>()).unwrap(), 1.0);
        }
    }
}

#[test]
fn damaged_files_are_errors_whatever_byte_is_wrong() {
    let rt = host();
    let (s, folder) = (rt.session("damage").open(), folder());
    let path = folder.path().join("damaged");
    let open_and_read = |name: &str| -> Result<()> {
        match name.rsplit('.').next() {
            Some("npy") => read(&s, wait(npy::open(&path))).map(drop),
            Some("npz") => read(&s, wait(npz::open(&path))?.get("rows")).map(drop),
            _ => read(&s, wait(safetensors::open(&path))?.get("weights")).map(drop),
        }
    };
    for name in ["columns.npy", "deflated.npz", "weights.safetensors"] {
        let whole = std::fs::read(data(name)).unwrap();
        for length in (0..whole.len()).step_by(11) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = open_and_read(name).expect_err("it is cut short");
            assert_eq!(error.kind(), ErrorKind::Format, "{name} of {length} bytes: {error}");
            assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
        }
        // Some changes leave a file that can be read; none may do worse than be an error.
        for at in (0..whole.len()).step_by(5) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            if let Err(error) = open_and_read(name) {
                let known = [ErrorKind::Format, ErrorKind::DType, ErrorKind::TooLarge, ErrorKind::Rank];
                let known = known.contains(&error.kind())
                    || matches!(error.kind(), ErrorKind::Argument | ErrorKind::Unsupported);
                assert!(known, "{name}, byte {at}: {error:?}");
            }
        }
    }
    // A header that claims 80 GB, before which nothing is allocated.
    let mut bytes = std::fs::read(data("rows.npy")).unwrap();
    let claim = b"'shape': (100000, 100000), }";
    let at = bytes.windows(8).position(|window| window == b"'shape':").unwrap();
    bytes[at..at + claim.len()].copy_from_slice(claim);
    std::fs::write(&path, &bytes).unwrap();
    let error = wait(npy::open(&path)).unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.to_string().contains("80000000000 bytes"), "{error}");
    let error = wait(npy::open(folder.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn no_executor_is_held_and_no_half_of_a_file_gets_its_name() {
    let rt = host();
    let (s, folder) = (rt.session("threads").open(), folder());
    let path = folder.path().join("x.npy");
    // More than one block.
    let x = s.rand::<f64>([2100, 1001]);
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tokio.block_on(async {
        let error = tidemill_files::wait(npy::write(&path, &x)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        npy::write(&path, &x).await.unwrap();
        let back = npy::read(&s, &path).await.unwrap().real().unwrap();
        assert!(back.eq_to(&x).mean(..).item::<f64>().await.unwrap() == 1.0);
    });
    tidemill_files::wait(npy::write(&path, &x)).unwrap();
    let tensors = folder.path().join("x.safetensors");
    tidemill_files::wait(safetensors::write(&tensors, [("x", &x)])).unwrap();
    let back = wait(wait(safetensors::open(&tensors)).unwrap().read(&s, "x")).unwrap().real().unwrap();
    assert_eq!(wait(back.eq_to(&x).mean(..).item::<f64>()).unwrap(), 1.0);
    std::fs::remove_file(&tensors).unwrap();

    // A write that is dropped, and one that fails, leave the old file and nothing beside it.
    let old = std::fs::read(&path).unwrap();
    let mut dropped = Box::pin(npy::write(&path, s.ones::<f64>([3000, 3000])));
    assert!(common::poll_once(&mut dropped).is_none());
    drop(dropped);
    let fault = s.ones::<f32>([2, 3]) + s.ones::<f32>([4, 5]);
    let error = wait(npy::write(&path, &fault)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    until("the folder holds one file", || std::fs::read_dir(folder.path()).unwrap().count() == 1);
    assert!(std::fs::read(&path).unwrap() == old);
}

#[test]
fn arrow_lends_numbers_and_borrows_them() {
    use arrow_array::{BooleanArray, Int16Array, Int64Array, StringArray, cast::AsArray, types::Float32Type};
    use tidemill_files::arrow;
    let rt = host();
    let s = rt.session("arrow").open();
    let whole = Int64Array::from((0..100_000).collect::<Vec<i64>>());
    // A part of an Arrow array that does not begin where its memory does.
    let part = arrow::from_arrow(&s, &whole.slice(3, 10)).unwrap();
    assert_eq!(elements(&part), (vec![10, 1], (3..13).map(f64::from).collect()));
    let small = arrow::from_arrow(&s, &Int16Array::from(vec![-3, 4])).unwrap();
    assert_eq!((small.dtype().unwrap().name(), elements(&small).1), ("i32", vec![-3.0, 4.0]));
    let flags = arrow::from_arrow(&s, &BooleanArray::from(vec![true, false, true])).unwrap();
    assert_eq!(arrow::to_arrow(&wait(flags.gather_any()).unwrap()).unwrap().as_boolean().true_count(), 2);

    let gathered = wait(s.linspace(0.0f32, 1.0, 50_000).gather_any()).unwrap();
    let HostAny::F32(host) = &gathered else { panic!("f32 was made") };
    let lent = arrow::to_arrow(&gathered).unwrap();
    assert_eq!(lent.as_primitive::<Float32Type>().values().as_ptr(), host.as_slice().as_ptr(), "without a copy");

    let nulls = arrow::from_arrow(&s, &Int64Array::from(vec![Some(1), None])).unwrap_err();
    assert_eq!(nulls.kind(), ErrorKind::Argument);
    let text = arrow::from_arrow(&s, &StringArray::from(vec!["a"])).unwrap_err();
    assert_eq!(text.kind(), ErrorKind::DType);
}

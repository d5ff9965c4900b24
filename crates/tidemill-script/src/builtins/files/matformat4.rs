//! MAT files of version 4: matrices of numbers and text, one after the other.
//!
//! In: bytes. Out: variables. Each matrix has a header of five integers (its kind, rows, columns, whether it is
//! complex, the length of its name), its name, and its columns (MATLAB, *MAT-File Format*, chapter 2). Numbers of all
//! types become doubles, as in Octave. Must hold: no bytes lead to a matrix that the file does not contain.

use crate::value::{Data, Dims, Tensor, Value};
use num_complex::Complex64;

/// The number of bytes of a header.
const HEADER: usize = 20;
/// The greatest extent of a matrix, even if it has no elements.
const EXTENT_MAX: usize = 1 << 31;
/// The length of the longest name, including the zero at its end.
const NAME_MAX: usize = 64;

/// A matrix's header.
struct Header {
    big: bool,
    /// The way in which its numbers are stored: 0 to 5.
    storage: u32,
    is_text: bool,
    rows: usize,
    columns: usize,
    is_complex: bool,
    name: usize,
}

impl Header {
    /// Parses a header; `None` if its integers are not permitted.
    fn of(bytes: &[u8]) -> Option<Header> {
        let words: Vec<[u8; 4]> = bytes.get(..HEADER)?.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]]).collect();
        // The first integer is 1000 or more if the file is big-endian; read in the right order it is small.
        let big = u32::from_le_bytes(words[0]) >= 5000;
        let word = |i: usize| if big { u32::from_be_bytes(words[i]) } else { u32::from_le_bytes(words[i]) };
        let kind = word(0);
        let (order, zero, storage, content) = (kind / 1000, kind / 100 % 10, kind / 10 % 10, kind % 10);
        let fits = order == big as u32 && zero == 0 && storage <= 5 && content <= 1;
        let name = word(4) as usize;
        (fits && word(3) <= 1 && (1..=NAME_MAX).contains(&name)).then(|| Header {
            big,
            storage,
            is_text: content == 1,
            rows: word(1) as usize,
            columns: word(2) as usize,
            is_complex: word(3) == 1,
            name,
        })
    }

    fn width(&self) -> usize {
        [8, 4, 4, 2, 2, 1][self.storage as usize]
    }

    /// Returns the numbers of the real or the imaginary part.
    fn numbers(&self, bytes: &[u8]) -> Vec<f64> {
        macro_rules! read {
            ($number:ty) => {
                bytes
                    .chunks_exact(size_of::<$number>())
                    .map(|chunk| {
                        let mut own = [0; size_of::<$number>()];
                        own.copy_from_slice(chunk);
                        let number =
                            if self.big { <$number>::from_be_bytes(own) } else { <$number>::from_le_bytes(own) };
                        number as f64
                    })
                    .collect()
            };
        }
        match self.storage {
            0 => read!(f64),
            1 => read!(f32),
            2 => read!(i32),
            3 => read!(i16),
            4 => read!(u16),
            _ => read!(u8),
        }
    }
}

/// Whether these bytes begin like such a file.
pub fn is_mat(bytes: &[u8]) -> bool {
    let name = |header: Header| {
        let name = bytes.get(HEADER..HEADER + header.name)?;
        let (zero, letters) = name.split_last()?;
        Some(*zero == 0 && !letters.is_empty() && letters.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_'))
    };
    Header::of(bytes).and_then(name).unwrap_or(false)
}

/// Returns the variables of a file, in the file's order.
///
/// # Errors
/// A description of the fault in the bytes.
pub fn read(mut bytes: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let header = Header::of(bytes).ok_or("a matrix of another kind, or sparse, is not read")?;
        if header.rows.max(header.columns) > EXTENT_MAX {
            return Err("a matrix is too large".into());
        }
        let elements = header.rows.checked_mul(header.columns).ok_or("a matrix is too large")?;
        let part = elements.checked_mul(header.width()).ok_or("a matrix is too large")?;
        let begin = HEADER + header.name;
        let end = part.checked_mul(1 + header.is_complex as usize).and_then(|len| begin.checked_add(len));
        let end = end.filter(|&end| end <= bytes.len()).ok_or("the file ends too early")?;
        let name = String::from_utf8_lossy(&bytes[HEADER..begin]).trim_end_matches('\0').to_string();
        let real = header.numbers(&bytes[begin..begin + part]);
        let data = if header.is_complex {
            let imaginary = header.numbers(&bytes[begin + part..end]);
            Data::C64(real.into_iter().zip(imaginary).map(|(re, im)| Complex64::new(re, im)).collect())
        } else if header.is_text {
            Data::Char(real.into_iter().map(|code| code as u8).collect())
        } else {
            Data::F64(real)
        };
        out.push((name, Value::tensor(Tensor::new(Dims::new(&[header.rows, header.columns]), data))));
        bytes = &bytes[end..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: u32, extents: [u32; 2], is_complex: u32, name: &[u8], body: &[u8]) -> Vec<u8> {
        let words = [kind, extents[0], extents[1], is_complex, name.len() as u32];
        [words.iter().flat_map(|w| w.to_le_bytes()).collect(), name.to_vec(), body.to_vec()].concat()
    }

    #[test]
    fn matrices_and_text_follow_each_other() {
        let doubles: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut bytes = file(0, [1, 2], 0, b"x\0", &doubles);
        bytes.extend(file(51, [1, 3], 0, b"text\0", b"abc"));
        bytes.extend(file(30, [2, 1], 1, b"z\0", &[1, 0, 2, 0, 255, 255, 4, 0]));
        assert!(is_mat(&bytes));
        let all = read(&bytes).unwrap();
        assert_eq!(all.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["x", "text", "z"]);
        assert!(matches!(&all[0].1, Value::Tensor(t) if *t.data == Data::F64(vec![1.5, -2.0])));
        assert_eq!(all[1].1.as_text().as_deref(), Some("abc"));
        let expected = Data::C64(vec![Complex64::new(1.0, -1.0), Complex64::new(2.0, 4.0)]);
        assert!(matches!(&all[2].1, Value::Tensor(t) if *t.data == expected));
    }

    #[test]
    fn bytes_that_end_too_early_or_are_of_another_kind_are_an_error() {
        let bytes = file(0, [u32::MAX, u32::MAX], 0, b"x\0", &[0; 16]);
        assert!(is_mat(&bytes) && read(&bytes).is_err());
        assert!(read(&file(2, [1, 1], 0, b"x\0", &[0; 8])).is_err());
        assert!(!is_mat(b"1 2 3\n4 5 6\n7 8 9\n0 0 0\n") && !is_mat(&[0; 64]));
    }
}

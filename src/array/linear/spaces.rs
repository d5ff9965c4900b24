//! Orthonormal bases of the null space and of the range of matrices, whose shapes depend on data.

use super::spectrum::{counted, svd};
use super::{Matrices, Pages};
use crate::array::handle::Array;
use crate::array::record::{At, derive};
use crate::array::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Meta, Nan, ReduceOp, rules};
use std::panic::Location;

impl Array {
    /// Orthonormal columns that span the null space of `m` by `n` matrices, for each page: `[n, n - r, ..]`, where `r`
    /// is the [`Array::rank`]. The matrix times these columns is zero up to rounding. The future awaits the rank. The
    /// singular values are computed on the host.
    ///
    /// The columns are vectors of [`Array::svd`], and so are their derivatives: NaN where singular values are equal, as
    /// those of a null space of several dimensions are.
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Domain` if pages have different ranks; and errors of the computation of the rank.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("null").open();
    /// # futures::executor::block_on(async {
    /// let a = s.from_row_major(&[1.0, 1.0, 2.0, 2.0], [2, 2])?;
    /// let basis = a.null_space().await?;
    /// assert_eq!(basis.shape()?.dims(), [2, 1]);
    /// assert!(a.matmul(&basis).norm(..).item::<f64>().await? < 1e-14);
    /// # Ok::<(), tidemill::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn null_space(&self) -> impl Future<Output = Result<Array>> + Send + use<> {
        space(self, Space::Null, Location::caller())
    }

    /// Orthonormal columns that span the range of `m` by `n` matrices, for each page: `[m, r, ..]`, where `r` is the
    /// [`Array::rank`]. The future awaits the rank. The singular values are computed on the host. Derivatives are those
    /// of the vectors of [`Array::svd`].
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Domain` if pages have different ranks; and errors of the computation of the rank.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("orth").open();
    /// # futures::executor::block_on(async {
    /// let a = s.from_row_major(&[3.0, 6.0, 4.0, 8.0], [2, 2])?;
    /// let basis = a.orth().await?.abs();
    /// let error = basis.gather::<f64>().await?.as_slice().iter().zip([0.6, 0.8]).map(|(x, y)| (x - y).abs()).sum::<f64>();
    /// assert!(error < 1e-14);
    /// # Ok::<(), tidemill::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn orth(&self) -> impl Future<Output = Result<Array>> + Send + use<> {
        space(self, Space::Range, Location::caller())
    }
}

/// A space that belongs to a matrix.
#[derive(Clone, Copy)]
enum Space {
    Null,
    Range,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Null => "null_space",
            Space::Range => "orth",
        }
    }
}

fn space(array: &Array, space: Space, at: At) -> impl Future<Output = Result<Array>> + Send + use<> {
    let name = space.name();
    let matrices = derive(&[array], name, at, |home, _| Ok(Matrices::of(home, array, at)?.array));
    let filled = matrices.elements().map(|elements| elements > 0);
    // The vectors of singular values, all of which a null space needs, and the ranks.
    let whole = derive(&[&matrices], name, at, |home, _| completed(&Pages::of(home, &matrices, at)?, &matrices, space));
    let found = matches!(filled, Ok(true)).then(|| {
        let (left, values, right) = svd(&whole, at);
        let vectors = match space {
            Space::Null => right,
            Space::Range => left,
        };
        let ranks = derive(&[&matrices, &values], name, at, |home, _| ranks(&Pages::of(home, &matrices, at)?, &values));
        // The ranks are in progress from now on.
        (vectors, ranks.gather::<u32>())
    });
    async move {
        filled?;
        let Some((vectors, ranks)) = found else {
            return derive(&[&matrices], name, at, |home, _| of_nothing(&Pages::of(home, &matrices, at)?, space))
                .checked();
        };
        let ranks = ranks.await?;
        let (least, most) = (ranks.as_slice()[0] as usize, ranks.as_slice()[1] as usize);
        derive(&[&vectors], name, at, |home, metas| {
            if least != most {
                let message = format!("the matrices have different ranks, from {least} to {most}");
                return Err(Error::new(ErrorKind::Domain, message));
            }
            let r = Recorder { home, at };
            match space {
                Space::Null => r.part(&vectors, 1, most, metas[0].shape.dim(1) - most),
                Space::Range => r.part(&vectors, 1, 0, most),
            }
        })
        .checked()
    }
}

/// The matrices, with rows of zeros if they have fewer rows than columns, so that a null space has all of its vectors.
fn completed(pages: &Pages<'_>, matrices: &Array, space: Space) -> Result<Array> {
    let (m, n) = pages.extents();
    match space {
        Space::Null if pages.meta.elements() > 0 => pages.recorder.padded(matrices, 0, 0, n.saturating_sub(m)),
        Space::Null | Space::Range => Ok(matrices.clone()),
    }
}

/// The least and the greatest rank of matrices with these singular values, as a column.
fn ranks(pages: &Pages<'_>, values: &Array) -> Result<Array> {
    let r = pages.recorder;
    let each = r.reduce(&counted(r, values, &pages.meta)?, ReduceOp::CountNonzero, 1, Nan::Include)?;
    let over = |op| r.reduce(&each, op, rules::all_dims(each.shape()?), Nan::Include);
    r.join(0, &[&over(ReduceOp::Min)?, &over(ReduceOp::Max)?])
}

/// The space of matrices without elements.
fn of_nothing(pages: &Pages<'_>, space: Space) -> Result<Array> {
    let (m, n) = pages.extents();
    let (rows, columns) = match space {
        Space::Null => (n, n),
        Space::Range => (m, 0),
    };
    let meta = Meta { dtype: pages.meta.dtype, shape: pages.pages_of(rows, columns)? };
    if meta.elements() == 0 { pages.recorder.zeros(meta) } else { pages.identity(rows, columns) }
}
